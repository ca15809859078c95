package arc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// siteContext contains a site's documents in the protocol, which the rules share. It accepts
// invalid documents, which the reader refuses, so that rules can report them.
type siteContext struct {
	kit.SiteContext
	home   *check.Response
	robots *fetch.Robots // nil if absent
	named  []string      // lists to which robots.txt refers
	linked []string      // lists to which JSON-LD and links of the home page refer
	data   []string      // lists to which only JSON-LD refers
	list   *seenList
	broken []*seenList // documents that are not JSON objects, possibly including the list
	pages  []*seenPage // sampled pages
}

// seenList is a document that appears to be a list.
type seenList struct {
	url     string
	resp    *check.Response
	yaml    bool
	fields  map[string]json.RawMessage // nil if the document is not a JSON object
	why     string                     // why the document is not a JSON object
	entries []*seenEntry               // elements of pages that are JSON objects
	strange []string                   // positions of the elements of pages that are not JSON objects
}

// seenEntry is an entry of a list.
type seenEntry struct {
	at     string // position in the list, such as pages/3
	fields map[string]json.RawMessage
	url    string // canonical URL; "" if invalid
}

// seenPage is a sampled page with the result of its GET.
type seenPage struct {
	*seenEntry
	list string // URL of the list
	home string // canonical URL that the home page declares, or ""
	resp *check.Response
	err  error // error of the request, or nil
}

func (s *siteContext) run(ctx context.Context) error {
	home, err := s.Target.Get(ctx, s.Target.Root())
	if err != nil {
		return err
	}
	s.home = home
	s.AddHosts(home.URL) // a host to which the site redirects belongs to the site
	if err := s.readRobots(ctx); err != nil {
		return err
	}
	s.readHome()
	places := slices.Concat(s.named, s.linked, []string{s.At(pathList), s.At(pathWellKnown), s.At(pathYAML)})
	why := ""
	var tried []string
	for _, u := range places {
		if slices.Contains(tried, u) || len(tried) > 2*maxListURLs {
			continue
		}
		tried = append(tried, u)
		l, reason, err := s.fetchList(ctx, u)
		if err != nil {
			return err
		}
		why = cmp.Or(why, reason)
		if l != nil && l.fields == nil {
			s.broken = append(s.broken, l)
		}
		// A broken list may be followed by a valid one.
		if l != nil && (s.list == nil || s.list.fields == nil && l.fields != nil) {
			s.list = l
		}
		if s.list != nil && s.list.fields != nil {
			break
		}
	}
	if s.list == nil {
		return fmt.Errorf("%s has no %s: %s: %w", s.Target.Root(), pathList, why, check.ErrAbsent)
	}
	return s.samplePages(ctx)
}

func (s *siteContext) readRobots(ctx context.Context) (err error) {
	if _, s.robots, err = s.Robots(ctx); s.robots != nil {
		s.named = jsonFirst(kit.Sitemaps(s.robots, s.Root(), isListName))
	}
	return err
}

// readable reports whether a response is a 200 with content other than HTML.
func readable(r *check.Response) bool { return r.OK() && !weblink.IsHTML(r.Header) }

func (s *siteContext) readHome() {
	base, err := url.Parse(s.home.URL)
	if err != nil || s.home.Status != http.StatusOK {
		return
	}
	head := kit.HeadOf(s.home)
	s.data = pointers(weblink.Head{Data: head.Data}, base)
	s.linked = jsonFirst(pointers(head, base))
}

// broken matches a list that is not a JSON object, such as a truncated one.
var broken = regexp.MustCompile(`arc_sitemap_version|"ai_[a-z]+"`)

// fetchList fetches a document that may be a list. If the document is not a list, it returns nil
// and the reason.
func (s *siteContext) fetchList(ctx context.Context, u string) (*seenList, string, error) {
	resp, why, err := s.Document(ctx, u)
	switch {
	case resp == nil:
		return nil, why, err
	case weblink.IsHTML(resp.Header):
		return nil, "HTML", nil
	}
	l := readList(u, resp)
	if l.fields["arc_sitemap_version"] != nil || l.fields["pages"] != nil || l.fields == nil && broken.Match(resp.Body) {
		return l, "", nil
	}
	return nil, cmp.Or(l.why, "something else"), nil
}

// readList parses a list.
func readList(u string, resp *check.Response) *seenList {
	l := &seenList{url: u, resp: resp}
	text := resp.Body
	l.yaml = isYAMLName(strings.ToLower(u)) || strings.Contains(strings.ToLower(resp.Header.Get("Content-Type")), "yaml")
	if l.yaml {
		var err error
		if text, err = fromYAML(bytes.NewReader(text)); err != nil {
			l.why = err.Error()
			return l
		}
	}
	if err := json.Unmarshal(text, &l.fields); err != nil || l.fields == nil {
		l.fields, l.why = nil, "not a JSON object"
		if err != nil {
			l.why = err.Error()
		}
		return l
	}
	var pages []json.RawMessage
	if json.Unmarshal(l.fields["pages"], &pages) != nil {
		return l
	}
	for i, raw := range pages {
		e := &seenEntry{at: fmt.Sprintf("pages/%d", i)}
		if json.Unmarshal(raw, &e.fields) != nil || e.fields == nil {
			l.strange = append(l.strange, e.at+": "+kit.Short(string(raw)))
			continue
		}
		if s, ok := check.JSONText(e.fields["url"]); ok && isURI(s) {
			e.url, _ = canon.URL(s)
		}
		l.entries = append(l.entries, e)
	}
	return l
}

// samplePages fetches a sample of the pages that the list allows clients to index.
func (s *siteContext) samplePages(ctx context.Context) error {
	var open []*seenEntry
	seen := map[string]bool{}
	for _, e := range s.list.entries {
		if e.open() && e.url != "" && !seen[e.url] && s.HasHost(e.url) && s.allows(e.url) && !s.Target.OnOtherServer(e.url) {
			seen[e.url] = true
			open = append(open, e)
		}
	}
	home := ""
	if s.home.Status == http.StatusOK {
		home = canonical(s.home)
	}
	for _, e := range check.Sample(s.Target, open) {
		p := &seenPage{seenEntry: e, list: s.list.url, home: home}
		p.resp, p.err = s.Target.Get(ctx, e.url)
		s.pages = append(s.pages, p)
	}
	return ctx.Err()
}

// allows reports whether robots.txt allows a URL.
func (s *siteContext) allows(u string) bool {
	p, err := url.Parse(u)
	return err == nil && s.robots.Allowed(p.RequestURI())
}

// open reports whether the list allows indexing the page.
func (e *seenEntry) open() bool {
	return string(e.fields["ai_indexable"]) == "true" && restriction(e.text("robots_directive")) == ""
}

func (e *seenEntry) text(name string) string { return kit.Text(e.fields[name]) }

// snapshot returns the snapshot of an entry, or nil.
func (e *seenEntry) snapshot() node {
	if raw := e.fields["ai_snapshot"]; len(raw) > 0 && raw[0] == '{' {
		return parseNode(raw)
	}
	return nil
}

// ok reports whether the response is a 200 with a readable body.
func (p *seenPage) ok() bool {
	return p.err == nil && p.resp.Status == http.StatusOK && p.resp.BodyErr == nil
}
