package scp

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol"
)

// every is the name of the section of all pages.
const every = "all"

// Limits of the division of a site into sections.
const (
	maxSections = 64
	minSection  = 2    // minimum number of pages of a section
	maxCounted  = 4096 // maximum number of sections whose pages are counted
	maxSlug     = 40   // approximate maximum length of a slug in bytes
)

// section is a part of the site with its own collections.
type section struct {
	name  string // the slug of the section
	pages int    // number of pages with a tag

	snapshot *group // listed snapshot, or nil
	touched  bool   // whether the snapshot differs from the view
	newest   moment // newest change that the snapshot does not contain
	listed   []*group
}

// division contains the page counts of the sections of a view, by key.
type division struct {
	site   millrace.Site
	total  int
	counts map[string]int // read-only
}

// count returns the number of pages of a view, and the number of pages of each section by key.
func (p *publisher) count(ctx context.Context, v millrace.View) (total int, counts map[string]int, err error) {
	base := v.Site().Base
	counts = map[string]int{}
	run, n := "", 0
	end := func() {
		if _, known := counts[run]; run != "" && (known || n >= minSection && len(counts) < maxCounted) {
			counts[run] += n
		}
		n = 0
	}
	for t, err := range v.Tags(ctx, Name, "") {
		if err != nil {
			return 0, nil, err
		}
		total++
		key := p.key(canon.Relative(base, t.URL))
		if key != run {
			end()
			run = key
		}
		n++
	}
	end()
	return total, counts, nil
}

// divide divides a site into at most maxSections sections, by first path segments or by configured
// prefixes, and the section "all". byKey maps the key of a page to its section. list[0] is "all",
// which contains all pages. divide reads all tags, unless the pages with a tag are the same as in
// the previous view.
func (p *publisher) divide(ctx context.Context, v millrace.View) (list []*section, byKey map[string]*section, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, same, err := protocol.SameTags(ctx, v, Name, p.last.site)
	total, counts := p.last.total, p.last.counts
	if err == nil && !same {
		total, counts, err = p.count(ctx, v)
	}
	if err != nil {
		return nil, nil, err
	}
	p.last = division{v.Site(), total, counts}
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	keys = keys[:min(len(keys), maxSections)]
	slices.Sort(keys)
	list = []*section{{name: every, pages: total}}
	byKey = map[string]*section{}
	taken := map[string]bool{every: true}
	for _, k := range keys {
		name := slug(k)
		for i := 2; taken[strings.ToLower(name)]; i++ {
			name = slug(k) + "-" + strconv.Itoa(i)
		}
		taken[strings.ToLower(name)] = true
		s := &section{name: name, pages: counts[k]}
		list, byKey[k] = append(list, s), s
	}
	return list, byKey, nil
}

// key returns the key of a page's section, or "" if the page has no section.
func (p *publisher) key(pagePath string) string {
	path, _, _ := strings.Cut(pagePath, "?")
	if !strings.HasPrefix(path, "/") {
		return ""
	}
	if p.own.Sections == nil {
		first, _, _ := strings.Cut(path[1:], "/")
		return first
	}
	best := ""
	for _, prefix := range p.own.Sections {
		prefix = "/" + strings.Trim(prefix, "/")
		if (path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > len(best) {
			best = prefix
		}
	}
	return strings.TrimPrefix(best, "/")
}

// slug converts the key of a section to a name of letters, digits, "-" and "_".
func slug(key string) string {
	if plain, err := url.PathUnescape(key); err == nil {
		key = plain
	}
	var b strings.Builder
	dash := false
	for _, r := range key {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_':
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		default:
			dash = true
		}
		if b.Len() >= maxSlug {
			break
		}
	}
	if b.Len() == 0 {
		return "section"
	}
	return b.String()
}
