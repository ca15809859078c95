package static

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// rule is a rule of a _headers file: the fields of the paths that it matches. Its path has
// at most one "*", which matches any characters.
type rule struct {
	path   string
	fields []field
}

func (r *rule) matches(p string) bool {
	before, after, wild := strings.Cut(r.path, "*")
	if !wild {
		return p == r.path
	}
	return len(p) >= len(before)+len(after) && strings.HasPrefix(p, before) && strings.HasSuffix(p, after)
}

// matched describes the paths that a pattern matches.
type matched struct {
	n         int
	common    []field // fields that all these paths have
	immutable bool    // all paths are immutable
}

// maxPatterns is the maximum number of patterns to try.
const maxPatterns = 4096

// patterns returns the patterns below a prefix that match a path: by extension, by extension
// in one folder, and by the last segment. No pattern matches paths outside the prefix.
func patterns(prefix, p string) (out []string) {
	dir, base := path.Split(p)
	first, _, _ := strings.Cut(strings.TrimPrefix(dir, "/"), "/")
	for _, ext := range extensions(p) {
		out = append(out, prefix+"/*"+ext)
		if first != "" {
			out = append(out, prefix+"/"+first+"/*"+ext)
		}
	}
	if first != "" && base != "" {
		out = append(out, prefix+"/*/"+base)
	}
	return out
}

// wildcards returns the patterns that set the most common fields of documents and match
// no other file.
func (b *Build) wildcards() ([]rule, error) {
	known := make(map[string]*matched)
	err := b.each(func(l *line) error {
		if l.Set > 0 {
			for _, p := range patterns(b.prefix, l.Path) {
				if known[p] == nil && len(known) < maxPatterns {
					known[p] = new(matched)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = b.each(func(l *line) error {
		for _, p := range patterns(b.prefix, l.Path) {
			t := known[p]
			if t == nil {
				continue
			}
			fields := b.settable(l.Set)
			if link := b.splatted(p, l); link != "" {
				fields = append(fields, field{"Link", link})
			}
			if t.n++; t.n == 1 {
				t.common, t.immutable = fields, l.Immutable
			} else {
				t.common, t.immutable = both(t.common, fields), t.immutable && l.Immutable
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var found []rule
	for p, t := range known {
		// An immutable file gets a new name at each change, so a rule for its exact name would
		// change too.
		if (t.n > 1 || t.immutable) && len(t.common) > 0 {
			found = append(found, rule{p, t.common})
		}
	}
	slices.SortFunc(found, func(a, b rule) int {
		x, y := known[a.path], known[b.path]
		switch {
		case x.immutable != y.immutable:
			return cmp.Compare(immutableLast(x), immutableLast(y)) // for immutable files, the number of paths is not meaningful
		case x.immutable:
			return cmp.Compare(a.path, b.path)
		}
		return cmp.Or(cmp.Compare(y.n, x.n), cmp.Compare(a.path, b.path))
	})
	var out []rule
	for _, r := range found {
		for _, other := range out {
			if path.Ext(other.path) == path.Ext(r.path) {
				// If both rules match a path, the host would send the field twice.
				r.fields = without(r.fields, other.fields)
			}
		}
		if len(r.fields) > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}

func immutableLast(t *matched) int {
	if t.immutable {
		return 1
	}
	return 0
}

// splat is the placeholder, in values of Cloudflare Pages, for the characters that a "*"
// matches.
const splat = ":splat"

// splatted returns the Link field of a file in a form that fits all files of the pattern.
// It returns "" if that is impossible.
func (b *Build) splatted(pattern string, l *line) string {
	if !b.kind.splats || l.Link == "" || strings.Contains(l.Link, splat) {
		return ""
	}
	home := b.base.Scheme + "://" + b.base.Host + b.prefix + "/"
	part := (&rule{path: pattern}).star(b.prefix + l.Path)
	link := strings.Replace(l.Link, home+part, home+splat, 1)
	if part == "" || link == l.Link {
		return ""
	}
	return link
}

// star returns the part of a path that the "*" of a rule matches.
func (r *rule) star(p string) string {
	before, after, wild := strings.Cut(r.path, "*")
	if !wild {
		return ""
	}
	return p[len(before) : len(p)-len(after)]
}

// fieldsFor returns the fields that a rule sets for a path that it matches.
func (r *rule) fieldsFor(p string, splats bool) []field {
	if !splats {
		return r.fields
	}
	out := slices.Clone(r.fields)
	for i := range out {
		out[i].Value = strings.ReplaceAll(out[i].Value, splat, r.star(p))
	}
	return out
}

// both returns the fields that are in a and in b.
func both(a, b []field) (out []field) {
	for _, f := range a {
		if slices.Contains(b, f) {
			out = append(out, f)
		}
	}
	return out
}

// without returns the fields of a whose names are not in b.
func without(a, b []field) (out []field) {
	for _, f := range a {
		if !slices.ContainsFunc(b, func(g field) bool { return g.Name == f.Name }) {
			out = append(out, f)
		}
	}
	return out
}
