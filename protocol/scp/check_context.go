package scp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
)

// siteContext contains the SCP documents of a site, which all rules share. It accepts invalid
// documents, which the reader refuses, so that rules can report them.
type siteContext struct {
	kit.SiteContext
	limits *OpenOptions
	here   *check.Response
	list   *seenSitemap // the sitemap with the SCP elements
	refs   []*reference
	files  []*seenFile // files to examine, the codings of the snapshot first
}

// seenSitemap is a sitemap with SCP elements.
type seenSitemap struct {
	url      string
	resp     *check.Response
	elements []*seenElement
	err      error // why the sitemap is invalid
}

// reference is an scp:collection or scp:delta element. An absent or invalid value is the zero value,
// or -1 for numbers.
type reference struct {
	e                         *seenElement
	delta                     bool
	section                   string
	url                       string // canonical URL
	generated, since, expires time.Time
	pages, size               int64
}

// group returns a key that is the same for all codings of a collection.
func (r *reference) group() string {
	return fmt.Sprint(r.section, r.delta, r.since.UnixNano(), r.generated.UnixNano())
}

func (s *siteContext) run(ctx context.Context) error {
	var err error
	if s.here, err = s.Get(ctx, s.Target.Site()); err != nil {
		return err
	}
	s.AddHosts(s.here.URL) // a redirect target counts as a host of the site
	if err := s.findSitemap(ctx); err != nil {
		return err
	}
	s.refs = s.list.references()
	for _, r := range s.choose() {
		f, err := s.fetch(ctx, r)
		if err != nil {
			return err
		}
		s.files = append(s.files, f)
	}
	s.study(ctx)
	return ctx.Err()
}

// findSitemap finds the sitemap with the SCP elements. It tries /sitemap.xml, the sitemaps in
// robots.txt, and the sitemaps in sitemap indexes.
func (s *siteContext) findSitemap(ctx context.Context) error {
	todo := []candidate{{url: s.At("/sitemap.xml")}}
	_, robots, err := s.Robots(ctx)
	if err != nil {
		return err
	}
	for _, u := range kit.Sitemaps(robots, s.Root(), func(u string) bool { return !sitemap.IsOther(u) }) {
		s.AddHosts(u) // robots.txt authorizes the host of u
		todo = append(todo, candidate{url: u})
	}
	why := ""
	asked := map[string]bool{}
	for i := 0; i < len(todo) && len(asked) < maxSitemaps; i++ {
		c := todo[i]
		if asked[c.url] {
			continue
		}
		asked[c.url] = true
		resp, reason, err := s.Document(ctx, c.url)
		if err != nil {
			return err
		}
		if resp == nil {
			why = cmp.Or(why, c.url+": "+reason)
			continue
		}
		l := &seenSitemap{url: c.url, resp: resp, elements: walk(resp.Body)}
		children := l.entries()
		if slices.ContainsFunc(l.elements, func(e *seenElement) bool { return e.attributes() != nil }) {
			s.list = l
			return nil
		}
		for _, u := range children {
			if c.depth+1 < maxSitemapDepth && s.HasHost(u) {
				todo = append(todo, candidate{u, c.depth + 1})
			}
		}
	}
	return fmt.Errorf("%s: %w", cmp.Or(why, "no sitemap of the site has SCP elements"), check.ErrAbsent)
}

// entries parses the sitemap and returns its child sitemaps. It stores a parse error in l.err.
func (l *seenSitemap) entries() (children []string) {
	base, err := url.Parse(l.resp.URL)
	if err != nil {
		l.err = err
		return nil
	}
	for e, err := range sitemap.Parse(bytes.NewReader(l.resp.Body), nil) {
		if err != nil {
			l.err = err
			break
		}
		if u, err := canon.Resolve(base, e.URL); e.Sitemap && err == nil && len(children) < maxChildren {
			children = append(children, u)
		}
	}
	return children
}

// references returns the snapshots and deltas that the sitemap lists.
func (l *seenSitemap) references() (out []*reference) {
	base, err := url.Parse(l.resp.URL)
	if err != nil {
		return nil
	}
	integer := func(s string) int64 {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
			return n
		}
		return -1
	}
	for _, e := range l.elements {
		if e.name != "collection" && e.name != "delta" {
			continue
		}
		r := &reference{e: e, delta: e.name == "delta", section: e.attr["section"], pages: integer(e.attr["pages"]), size: integer(e.attr["size"])}
		if u, err := canon.Resolve(base, e.attr["url"]); err == nil && e.attr["url"] != "" {
			r.url = u
		}
		for name, to := range map[string]*time.Time{"generated": &r.generated, "expires": &r.expires, "since": &r.since} {
			if t, err := instantOf(e.attr[name]); err == nil {
				*to = t
			}
		}
		out = append(out, r)
	}
	return out
}

// maxChosen is the maximum number of deltas to examine.
const maxChosen = 2

// choose returns the collections to examine: the smallest snapshot, preferably of a section with
// deltas, in all its codings, and the newest deltas of that section.
func (s *siteContext) choose() (out []*reference) {
	size := func(r *reference) int64 {
		if r.size < 0 {
			return 1 << 40
		}
		return r.size
	}
	smallest := func(of func(r *reference) bool) (best *reference) {
		for _, r := range s.refs {
			if r.url != "" && of(r) && (best == nil || size(r) < size(best)) {
				best = r
			}
		}
		return best
	}
	var deltas []*reference
	changes := func(section string) bool {
		return slices.ContainsFunc(s.refs, func(r *reference) bool { return r.delta && r.section == section })
	}
	first := smallest(func(r *reference) bool { return !r.delta && changes(r.section) })
	if first == nil || size(first) > maxExamined {
		first = smallest(func(r *reference) bool { return !r.delta })
	}
	section := ""
	if first != nil {
		section = first.section
		for _, r := range s.refs {
			if r.url != "" && r.group() == first.group() && len(out) < len(codings) {
				out = append(out, r)
			}
		}
	} else if d := smallest(func(r *reference) bool { return r.delta }); d != nil {
		section = d.section
	}
	for _, r := range s.refs {
		if i := slices.IndexFunc(deltas, func(d *reference) bool { return d.group() == r.group() }); r.url == "" || !r.delta || r.section != section {
			continue
		} else if i < 0 {
			deltas = append(deltas, r)
		} else if size(r) < size(deltas[i]) {
			deltas[i] = r
		}
	}
	slices.SortStableFunc(deltas, func(a, b *reference) int { return b.generated.Compare(a.generated) })
	return append(out, deltas[:min(len(deltas), maxChosen)]...)
}

// unchanged fetches the sitemap again, and reports whether r is the same in it. If r has changed, a
// mismatch between the sitemap and the file is not a violation.
func (s *siteContext) unchanged(ctx context.Context, r *reference) (bool, error) {
	now, err := check.Memo(ctx, s.Target, Name+" sitemap again", func(ctx context.Context) (*seenSitemap, error) {
		resp, err := s.DoUncached(ctx, http.MethodGet, s.list.url, nil)
		if err != nil {
			return nil, err
		}
		if !resp.OK() {
			return nil, errors.New("second request of the sitemap failed")
		}
		return &seenSitemap{url: s.list.url, resp: resp, elements: walk(resp.Body)}, nil
	})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(now.references(), func(other *reference) bool {
		a, b := *r, *other
		a.e, b.e = nil, nil
		return a == b
	}), nil
}

// suffixOf returns the coding that a URL's suffix names, or false if the specification does not
// define the suffix.
func suffixOf(u string) (coding string, ok bool) {
	path, _, _ := strings.Cut(u, "?")
	for _, c := range codings {
		if strings.HasSuffix(path, suffixes[c]) {
			return c, true
		}
	}
	return "", false
}
