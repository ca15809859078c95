package scp

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// published is a site in a real store, published by a real server. Tests set its clock.
type published struct {
	now    time.Time
	site   *protocoltest.Stored
	server *edition.Server

	frequency string // declared; "" = as often as the site changes
}

func publishing(t *testing.T, o *protocol.PublisherOptions) *published {
	return publishingEvery(t, "", o)
}

// publishingEvery is publishing with the declared update frequency of a site.
func publishingEvery(t *testing.T, frequency string, o *protocol.PublisherOptions) *published {
	t.Helper()
	p := &published{frequency: frequency, now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	dir := t.TempDir()
	p.site = protocoltest.Open(t, store.Config{Base: "https://x.test/", Taggers: []millrace.Tagger{Protocol().Tagger}}, func() time.Time { return p.now })
	p.server = p.another(t, o, filepath.Join(dir, "files"))
	return p
}

func (p *published) another(t *testing.T, o *protocol.PublisherOptions, dir string) *edition.Server {
	t.Helper()
	artifacts, err := artifactdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = artifacts.Close() })
	publisher := NewPublisher(o).(*publisher)
	publisher.frequency = p.frequency
	return edition.NewServer(edition.Source{Store: p.site.Store, Site: p.site, Publication: p.site.Pub}, []edition.Protocol{{Name: Name, Publisher: publisher}}, artifacts,
		&edition.Options{Now: func() time.Time { return p.now }, Logger: slog.New(slog.DiscardHandler)})
}

// put changes pages, given as pairs of URL and text. An empty text deletes the page.
func (p *published) put(t *testing.T, texts ...string) {
	t.Helper()
	var batch []millrace.Change
	for i := 0; i < len(texts); i += 2 {
		u, text := texts[i], texts[i+1]
		c := millrace.Change{Ref: millrace.Ref{URL: u}, Page: &millrace.Page{
			URL: u, Title: "Title of " + u, Blocks: millrace.TextBlocks(text), Known: millrace.AllFields &^ millrace.FieldModified, Detail: millrace.DetailBlocks,
		}}
		if text == "" {
			c = millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: u}}
		}
		batch = append(batch, c)
	}
	if _, err := p.site.Apply(t.Context(), "test", batch); err != nil {
		t.Fatal(err)
	}
}

// publish publishes an edition and returns its sitemap as served.
func (p *published) publish(t *testing.T) string {
	t.Helper()
	if _, err := p.server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p.get(t, "/sitemap.xml")
}

func (p *published) get(t *testing.T, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	if done, err := p.server.Serve(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil)); err != nil || !done || w.Code != 200 {
		t.Fatalf("GET %s: %d, %t, %v", path, w.Code, done, err)
	}
	return w.Body.String()
}

// element contains the attributes of an SCP element of a sitemap.
type element map[string]string

// elements returns the elements with a name and a section, for uncompressed collections only.
func elements(text, name, section string) (out []element) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "<scp:"+name+" ")
		if !ok {
			continue
		}
		e := element{}
		for {
			name, after, ok := strings.Cut(strings.TrimSpace(rest), `="`)
			if !ok {
				break
			}
			e[name], rest, _ = strings.Cut(after, `"`)
		}
		if (section == "" || e["section"] == section) && (e["url"] == "" || strings.HasSuffix(e["url"], ".scp")) {
			out = append(out, e)
		}
	}
	return out
}

func fileOf(e element) string { return strings.TrimPrefix(e["url"], "https://x.test") }

// urls verifies an uncompressed collection and returns the URLs of its pages.
func (p *published) urls(t *testing.T, e element) (out []string) {
	t.Helper()
	body := p.get(t, fileOf(e))
	c, err := Open(strings.NewReader(body), int64(len(body)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.Verify(t.Context()); err != nil || v.Checksum != "cut" || fmt.Sprint(v.Pages) != e["pages"] || fmt.Sprint(len(body)) != e["size"] {
		t.Errorf("%v: %+v, %v", e, v, err)
	}
	for page, err := range c.Pages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimPrefix(page.URL, "https://x.test"))
	}
	return out
}

func handbook() []string {
	out := []string{"/", "home"}
	for i := range 10 {
		out = append(out, fmt.Sprintf("/blog/%d", i), "post", fmt.Sprintf("/docs/%d/", i), "manual")
	}
	return out
}

func TestPublish(t *testing.T) {
	p := publishing(t, nil)
	p.put(t, handbook()...)
	text := p.publish(t)
	for _, section := range []string{"all", "blog", "docs"} {
		c := elements(text, "collection", section)
		if len(c) != 1 || c[0]["type"] != "snapshot" || c[0]["expires"] != "2026-03-06T00:00:00Z" {
			t.Fatalf("%s: %v in\n%s", section, c, text)
		}
		if got := len(p.urls(t, c[0])); section == "all" && got != 21 || section != "all" && got != 10 {
			t.Errorf("%s: %d pages", section, got)
		}
	}
	if d := elements(text, "delta", ""); len(d) != 0 {
		t.Errorf("deltas of a new site: %v", d)
	}
	pages := 0
	for e, err := range sitemap.Parse(strings.NewReader(text), nil) {
		if pages++; err != nil || e.Modified.IsZero() {
			t.Errorf("%+v %v", e, err)
		}
	}
	if pages != 21 {
		t.Errorf("the sitemap contains %d pages", pages)
	}

	// The next day, one page is changed, one added and one deleted.
	p.now = p.now.AddDate(0, 0, 1)
	first := text
	p.put(t, "/blog/3", "changed", "/blog/new", "new", "/docs/4/", "")
	text = p.publish(t)
	d := elements(text, "delta", "blog")
	if len(d) != 1 || d[0]["period"] != "2026-03-05" || d[0]["since"] != "2026-03-04T05:06:07Z" || len(p.urls(t, d[0])) != 2 {
		t.Errorf("delta of blog: %v", d)
	}
	if d := elements(text, "delta", "docs"); len(d) != 0 {
		t.Errorf("a delta without changes: %v", d)
	}
	for section, n := range map[string]int{"all": 21, "blog": 11, "docs": 9} {
		if got := p.urls(t, elements(text, "collection", section)[0]); len(got) != n {
			t.Errorf("%s: %d pages, want %d", section, len(got), n)
		}
	}
	// A replaced collection remains available to clients that are reading it. It is withdrawn
	// if one of its pages is deleted, because the owner may have hidden the page.
	p.get(t, fileOf(elements(first, "collection", "blog")[0]))
	for _, section := range []string{"all", "docs"} {
		if code, _ := p.status(t, fileOf(elements(first, "collection", section)[0]), ""); code != http.StatusGone {
			t.Errorf("%s of before: %d", section, code)
		}
	}

	// Another change on the same day replaces the delta of the day.
	p.now = p.now.Add(time.Hour)
	p.put(t, "/blog/5", "changed as well")
	text = p.publish(t)
	if d := elements(text, "delta", "all"); len(d) != 1 || len(p.urls(t, d[0])) != 3 || !(d[0]["generated"] > "2026-03-05T05:06:07Z") {
		t.Errorf("delta of the day: %v", d)
	}
	docs := elements(text, "collection", "docs")[0]

	// After midnight, the collections of an unchanged section stay the same, with a later
	// expiry.
	p.now = p.now.AddDate(0, 0, 1)
	midnight := p.publish(t)
	c := elements(midnight, "collection", "docs")[0]
	if c["url"] != docs["url"] || c["generated"] != docs["generated"] || c["expires"] == docs["expires"] {
		t.Errorf("docs after midnight: %v, before %v", c, docs)
	}
	if d := elements(midnight, "delta", "all"); len(d) != 1 || d[0]["period"] != "2026-03-05" || len(p.urls(t, d[0])) != 3 {
		t.Errorf("delta of yesterday: %v", d)
	}
	p.put(t, "/docs/7/", "changed")
	text = p.publish(t)
	if d := elements(text, "delta", "all"); len(d) != 2 || d[0]["period"] != "2026-03-05" || len(p.urls(t, d[1])) != 1 {
		t.Errorf("deltas of two days: %v", d)
	}
	// Old deltas are no longer listed.
	p.now = p.now.AddDate(0, 1, 0)
	if d := elements(p.publish(t), "delta", ""); len(d) != 0 {
		t.Errorf("deltas after a month: %v", d)
	}
}

// A new process with the same store and an empty artifact folder generates the same bytes.
func TestPublishAgain(t *testing.T) {
	p := publishing(t, nil)
	p.put(t, handbook()...)
	text := p.publish(t)
	p.server = p.another(t, nil, t.TempDir())
	if err := p.server.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.get(t, "/sitemap.xml"); got != text {
		t.Errorf("another process says\n%s\nnot\n%s", got, text)
	}
}

// A sitemap must not list pages of another origin. So there are no documents if the endpoint
// base has another origin.
func TestPublishElsewhere(t *testing.T) {
	p := publishing(t, nil)
	p.put(t, "/a", "text")
	v, err := protocoltest.Publish(t.Context(), p.site.Pub)
	if err != nil {
		t.Fatal(err)
	}
	pub := NewPublisher(nil)
	for docs, want := range map[string]int{"https://x.test/": 1, "https://x.test/docs/": 1, "https://y.test/": 0, "http://x.test/": 0} {
		if got := len(pub.Advertise(elsewhere{v, docs}).Robots); got != want {
			t.Errorf("documents at %s: %d lines for robots.txt, want %d", docs, got, want)
		}
	}
	p.site = protocoltest.Open(t, store.Config{Base: "https://x.test/", EndpointBase: "https://y.test/", Taggers: []millrace.Tagger{Protocol().Tagger}}, nil)
	p.put(t, "/a", "text")
	p.server = p.another(t, nil, t.TempDir())
	if _, err := p.server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if done, err := p.server.Serve(w, httptest.NewRequestWithContext(t.Context(), "GET", "/sitemap.xml", nil)); done || err != nil {
		t.Errorf("a sitemap was published: %d, %v", w.Code, err)
	}
}

// elsewhere is a view of a site with another endpoint base.
type elsewhere struct {
	millrace.View
	docs string
}

func (v elsewhere) Site() millrace.Site {
	site := v.View.Site()
	site.EndpointBase = v.docs
	return site
}

// A site with more pages than one sitemap may list has several sitemaps and an index.
func TestSitemapShards(t *testing.T) {
	o := &protocol.PublisherOptions{ListItems: 8}
	p := publishing(t, o)
	p.put(t, handbook()...)
	seen := map[string]int{}
	count := func(text string) {
		for e, err := range sitemap.Parse(strings.NewReader(text), nil) {
			if err != nil {
				t.Fatal(err)
			}
			seen[e.URL]++
		}
	}
	count(p.publish(t))
	shards := 0
	for e, err := range sitemap.Parse(strings.NewReader(p.get(t, "/sitemap-index.xml")), nil) {
		if err != nil || !e.Sitemap {
			t.Fatal(e, err)
		}
		if shards++; e.URL != "https://x.test/sitemap.xml" {
			count(p.get(t, strings.TrimPrefix(e.URL, "https://x.test")))
		}
	}
	if shards != 4 || len(seen) != 21 {
		t.Errorf("%d sitemaps contain %d pages", shards, len(seen))
	}
	for u, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", u, n)
		}
	}
	if n := NewPublisher(o).Advertise(p.server.Current().View); len(n.Robots) != 2 {
		t.Errorf("robots.txt: %q", n.Robots)
	}
}

// The first sitemap of a large site lists only pages. The snapshots follow.
func TestFirstEditionLarge(t *testing.T) {
	p := publishing(t, nil)
	for i := range atOnce + 1 {
		p.put(t, fmt.Sprintf("/p/%d", i), "The gates.")
	}
	all := p.publish(t)
	if n := len(elements(all, "collection", "all")); n != 1 {
		t.Errorf("%d files of the snapshot:\n%.1000s", n, all)
	}
	var first protocoltest.ArtifactSet
	if _, err := NewPublisher(nil).(millrace.ArtifactPublisher).Artifacts(t.Context(), p.server.Current().View, p.now, &first); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := first.Docs[0].Write(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	if s := text.String(); strings.Contains(s, "scp") || strings.Count(s, "<url>") != atOnce+1 || len(first.Files) > 0 {
		t.Errorf("%d files, %.1000s", len(first.Files), s)
	}
}

func TestPeriods(t *testing.T) {
	at := time.Date(2026, 3, 1, 5, 6, 7, 0, time.UTC) // a Sunday
	for _, c := range []struct{ frequency, name, start, end, before string }{
		{hourly, "2026-03-01T05", "2026-03-01T05:00:00Z", "2026-03-01T06:00:00Z", "2026-03-01T04"},
		{daily, "2026-03-01", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-02-28"},
		{weekly, "2026-02-23", "2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z", "2026-02-16"},
		{monthly, "2026-03", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "2026-02"},
	} {
		p := periodOf(c.frequency, at)
		if p.name() != c.name || p.start.Format(time.RFC3339) != c.start || p.end.Format(time.RFC3339) != c.end || p.before().name() != c.before || p.after().start != p.end {
			t.Errorf("%s: %+v, before it %s", c.frequency, p, p.before().name())
		}
	}
}

func TestSlug(t *testing.T) {
	for in, want := range map[string]string{
		"blog": "blog", "%C3%A9t%C3%A9": "t", "a b/c": "a-b-c", "日本": "section", "-x-": "x", strings.Repeat("a", 100): strings.Repeat("a", maxSlug),
	} {
		if got := slug(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A site that is published before its first page has collections with a valid time, which is
// earlier than that of the first page.
func TestNoPages(t *testing.T) {
	p := publishing(t, nil)
	p.publish(t)
	client := clientOf(atServer{p, t})
	read := func() (urls []string) {
		t.Helper()
		for c, err := range NewReader(client, "https://x.test/", nil).Changes(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == millrace.Put {
				urls = append(urls, c.URL)
			}
		}
		return urls
	}
	if urls := read(); len(urls) > 0 {
		t.Errorf("pages %q", urls)
	}
	p.put(t, "https://x.test/a", "A")
	p.publish(t)
	if urls := read(); !slices.Equal(urls, []string{"https://x.test/a"}) {
		t.Errorf("pages %q", urls)
	}
}
