package web

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// paper is a site in a real store. Tests can truncate its log.
type paper struct {
	t    *testing.T
	site *protocoltest.Stored
	pub  millrace.Publisher
	now  time.Time
}

func newPaper(t *testing.T, o *protocol.PublisherOptions) *paper {
	t.Helper()
	p := &paper{t: t, pub: NewPublisher(o), now: time.Date(2026, 5, 6, 7, 8, 9, 250e6, time.UTC)}
	p.site = protocoltest.Open(t, store.Config{Base: "https://x.test/", EndpointBase: "https://x.test/", Taggers: []millrace.Tagger{Protocol().Tagger}}, func() time.Time { return p.now })
	return p
}

// apply applies a batch: "+/a" writes the page /a with its own text, "*/a" makes it an archive, and
// "-/a" deletes it.
func (p *paper) apply(text string, edits ...string) {
	p.t.Helper()
	var batch []millrace.Change
	for _, e := range edits {
		c := millrace.Change{Ref: millrace.Ref{URL: e[1:]}}
		switch e[0] {
		case '-':
			c.Kind = millrace.Delete
		default:
			c.Page = &millrace.Page{
				URL: e[1:], Title: "Page <" + e[1:] + ">", Description: text, Author: "A & B", Tags: []string{"t"}, Language: "en",
				Published: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), Modified: time.Date(2021, 1, 2, 3, 4, 5, 0, time.UTC),
				Kind: millrace.Article, Blocks: millrace.TextBlocks(text), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
			}
			if e[0] == '*' {
				c.Page.Kind = millrace.Archive
			}
		}
		batch = append(batch, c)
	}
	if _, err := p.site.Apply(p.t.Context(), "source", batch); err != nil {
		p.t.Fatal(err)
	}
	p.now = p.now.Add(time.Minute)
}

func (p *paper) get(path string) (*millrace.Document, string, error) {
	p.t.Helper()
	v, err := protocoltest.Publish(p.t.Context(), p.site.Pub)
	if err != nil {
		p.t.Fatal(err)
	}
	d, err := p.pub.Find(p.t.Context(), v, httptest.NewRequestWithContext(p.t.Context(), http.MethodGet, path, nil))
	if err != nil {
		return nil, "", err
	}
	var b strings.Builder
	if err := d.Write(p.t.Context(), &b); err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
	return d, b.String(), nil
}

// feed parses a document of a feed with our reader, and returns its entries in short form.
func (p *paper) feed(path string) (entries []string, next string) {
	p.t.Helper()
	_, body, err := p.get(path)
	if err != nil {
		p.t.Fatal(err)
	}
	at, _ := url.Parse("https://x.test" + path)
	doc, err := decodeFeed([]byte(body), at)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", path, err, body)
	}
	if !doc.Tombstones {
		p.t.Errorf("%s does not report the deletions", path)
	}
	for _, e := range doc.Entries {
		sign := "+"
		if e.Gone {
			sign = "-"
		}
		entries = append(entries, fmt.Sprintf("%s%s %s", sign, strings.TrimPrefix(e.URL, "https://x.test"), e.Updated.Format("04:05.000")))
	}
	return entries, doc.Next
}

func TestFeeds(t *testing.T) {
	p := newPaper(t, &protocol.PublisherOptions{Own: []any{&PublisherOptions{Hubs: []string{"https://hub.test/?a&b"}}}})
	p.apply("first", "+/a", "+/b", "*/tag")
	p.apply("second", "+/c", "+/a")
	p.feed("/feed.atom") // publishes an edition
	p.apply("third", "-/b", "+/d")
	p.apply("fourth", "-/d") // no edition has published it
	atom, next := p.feed("/feed.atom")
	want := []string{"-/b 10:09.250", "+/a 09:09.250", "+/c 09:09.250"}
	slices.Sort(want)
	slices.Sort(atom)
	if d := cmp.Diff(want, atom); d != "" || next != "" {
		t.Errorf("next %q; -want +got\n%s", next, d)
	}
	items, _ := p.feed("/feed.json")
	slices.Sort(items)
	if d := cmp.Diff(want, items); d != "" {
		t.Errorf("JSON: -want +got\n%s", d)
	}

	d, body, err := p.get("/feed.atom")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`<id>https://x.test/feed.atom</id>`, `<link rel="self" type="application/atom+xml" href="https://x.test/feed.atom"/>`,
		`<link rel="hub" href="https://hub.test/?a&amp;b"/>`, "<title>Page &lt;/a&gt;</title>", `xml:lang="en"`, "<published>2020-01-02T03:04:05Z</published>",
		"<summary>second</summary>", `<category term="t"/>`, "<author><name>A &amp; B</name></author>",
		`<link rel="alternate" type="text/markdown" href="https://x.test/a.md"/>`, `<at:deleted-entry ref="https://x.test/b" when="2026-05-06T07:10:09.25Z"/>`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	if strings.Index(body, "<at:deleted-entry") > strings.Index(body, "<entry") {
		t.Errorf("the newest change is not the first in %s", body)
	}
	links := strings.Join(d.Header["Link"], ", ")
	if links != `<https://hub.test/?a&b>; rel="hub", <https://x.test/feed.atom>; rel="self"` || d.Header.Get("Last-Modified") != "Wed, 06 May 2026 07:11:09 GMT" {
		t.Errorf("%v", d.Header)
	}
	for _, name := range []string{"/feed-2.atom", "/feed-1.atom", "/feed-.json", "/feed.rss", "/feed-02.json", "/feed-99.atom"} {
		if _, _, err := p.get(name); !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A long log has several feed documents. Together they list every page once, and reach no
// further back than the log.
func TestFeedsOfMany(t *testing.T) {
	p := newPaper(t, nil)
	var edits []string
	for i := range 1200 {
		edits = append(edits, fmt.Sprintf("+/%04d", i))
	}
	p.apply("first", edits...)
	p.feed("/feed.atom")
	p.apply("second", "+/0003", "-/0700", "+/1100")
	follow := func() (all []string, documents int) {
		for path := "/feed.json"; path != ""; documents++ {
			entries, next := p.feed(path)
			for _, e := range entries {
				page, _, _ := strings.Cut(e[1:], " ")
				all = append(all, page)
			}
			path = strings.TrimPrefix(next, "https://x.test")
		}
		return all, documents
	}
	all, documents := follow()
	slices.Sort(all)
	if n := len(all); n != 1200 || len(slices.Compact(all)) != n || documents != 3 {
		t.Errorf("%d entries, %d pages, %d documents", n, len(slices.Compact(all)), documents)
	}
	entries, _ := p.feed("/feed.atom")
	newest := slices.DeleteFunc(entries, func(e string) bool { return !strings.HasSuffix(e, " 09:09.250") })
	if slices.Sort(newest); !slices.Equal(newest, []string{"+/0003 09:09.250", "+/1100 09:09.250", "-/0700 09:09.250"}) {
		t.Errorf("%q", newest)
	}
	before, _, err := p.get("/feed.atom")
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]bool{}
	for d, err := range p.pub.All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		built[d.Path] = true
	}
	for _, path := range []string{"/feed.atom", "/feed-2.atom", "/feed-3.atom", "/feed.json", "/feed-2.json", "/feed-3.json", "/sitemap.xml"} {
		if !built[path] {
			t.Errorf("%s is not built", path)
		}
	}
	if built["/feed-4.atom"] {
		t.Error("an empty feed was built")
	}
	for d, err := range p.pub.All(t.Context(), protocoltest.Volatile(v)) {
		if err != nil || d.Path == "/feed-2.atom" {
			t.Errorf("the feed of a volatile log: %v, %v", d, err)
		}
	}

	p.now = p.now.Add(time.Hour)
	p.apply("third", "+/0005")
	p.now = p.now.Add(time.Hour)
	if err := p.site.Compact(t.Context(), time.Minute, 90*time.Minute); err != nil {
		t.Fatal(err)
	}
	all, documents = follow()
	if documents != 1 || len(all) != 1 || all[0] != "/0005" {
		t.Errorf("the feed of a truncated log: %d documents, %q", documents, all)
	}
	after, _, err := p.get("/feed.atom")
	if err != nil || after.ETag == before.ETag {
		t.Errorf("%v, %s", err, after.ETag)
	}
}

// Without a log, the times of changes are unknown.
func TestFeedWithoutLog(t *testing.T) {
	view := protocoltest.NewView(millrace.Site{Base: "https://x.test/", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, []*millrace.Page{
		{URL: "/a", Title: "A", Kind: millrace.Article, Blocks: millrace.TextBlocks("a"), Known: millrace.AllFields, Detail: millrace.DetailBlocks},
	}, Protocol().Tagger)
	d, err := NewPublisher(nil).Find(t.Context(), view, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/feed.json", nil))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := d.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Items []jsonFeedItem `json:"items"`
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Items) != 1 || got.Items[0].ID != "https://x.test/a" || got.Items[0].Modified != "2026-01-02T03:04:05Z" {
		t.Errorf("%s", b.String())
	}
}

// A feed of any page is well-formed, and parses to the same values.
func FuzzFeedItem(f *testing.F) {
	f.Add("A <b> & \x00\x1f\uFFFE", "\"]]>", "en-US", int64(0))
	f.Add("", "\xff\xfe", "x\" onload=\"", int64(-62135596801))
	f.Fuzz(func(t *testing.T, title, tag, lang string, at int64) {
		it := &feedItem{
			URL: "https://x.test/a?b=1&c", Title: title, Summary: tag, Author: title, Tags: []string{tag}, Language: lang,
			Changed: time.Unix(at, 0), Published: time.Unix(at, 1), Alternate: "https://x.test/a.md?b=1&c",
		}
		gone := &feedItem{URL: "https://x.test/gone", Gone: true, Changed: time.Unix(at, 0)}
		head := &feedHead{ID: "i", Self: "https://x.test/feed.atom", Home: "https://x.test/", Title: title, Language: lang, Updated: time.Unix(at, 0)}
		var b strings.Builder
		a := newAtom(&b, head)
		a.item(it)
		a.item(gone)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		dec := xml.NewDecoder(strings.NewReader(b.String()))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v: %s", err, b.String())
			}
		}
		var j strings.Builder
		if err := writeJSONFeed(&j, head, []*feedItem{it, gone}); err != nil {
			t.Fatal(err)
		}
		self, _ := url.Parse(head.Self)
		for _, body := range []string{b.String(), j.String()} {
			doc, err := decodeFeed([]byte(body), self)
			if err != nil || len(doc.Entries) != 2 || doc.Entries[0].URL != it.URL || !doc.Entries[1].Gone || doc.Entries[1].URL != gone.URL {
				t.Fatalf("%v: %+v: %s", err, doc, body)
			}
		}
	})
}

func TestLicense(t *testing.T) {
	ask := func(p *millrace.Policy) (string, millrace.Advertisement) {
		site := millrace.Site{Base: "https://x.test/blog/", EndpointBase: "https://x.test/blog/", Title: "X & Y"}
		pub := NewPublisher(&protocol.PublisherOptions{Policy: p, Protocols: []string{"scp"}})
		view := protocoltest.NewView(site, nil)
		d, err := pub.Find(t.Context(), view, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/license.xml", nil))
		if errors.Is(err, millrace.ErrNotFound) {
			return "", pub.Advertise(view)
		}
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := d.Write(context.WithoutCancel(t.Context()), &b); err != nil {
			t.Fatal(err)
		}
		if !d.Public || d.Header.Get("Content-Type") != "application/rsl+xml; charset=utf-8" {
			t.Errorf("%+v", d)
		}
		return b.String(), pub.Advertise(view)
	}
	got, n := ask(&millrace.Policy{
		Terms: "https://x.test/terms?a&b", Payment: "https://x.test/pay", Contact: "mailto:me@x.test", Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Purposes:     map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: false, millrace.Search: true},
		Requirements: millrace.Requirements{Attribution: true},
	})
	want := xml.Header + `<rsl xmlns="https://rslstandard.org/rsl" max-age="1">
  <content url="/blog/" lastmod="2026-01-02T03:04:05Z">
    <license>
      <permits type="usage">search</permits>
      <prohibits type="usage">ai-train ai-input ai-index</prohibits>
      <payment type="attribution"/>
    </license>
    <copyright contactEmail="me@x.test">X &amp; Y</copyright>
    <terms>https://x.test/terms?a&amp;b</terms>
  </content>
</rsl>
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !slices.Contains(n.Public, "/license.xml") ||
		!slices.Contains(n.Root, millrace.Link{URL: "https://x.test/blog/license.xml", Rel: "license", Type: "application/rsl+xml"}) {
		t.Errorf("%+v", n)
	}
	for _, silent := range []*millrace.Policy{nil, {Terms: "https://x.test/terms"}} {
		if got, n := ask(silent); got != "" || slices.ContainsFunc(n.Root, func(l millrace.Link) bool { return l.Rel == "license" }) {
			t.Errorf("%+v: %s, %v", silent, got, n.Root)
		}
	}
}

// A page that no longer has Markdown is listed as deleted.
func TestFeedOfArchives(t *testing.T) {
	p := newPaper(t, nil)
	var edits []string
	for i := range feedItems + 10 {
		edits = append(edits, fmt.Sprintf("+/%04d", i))
	}
	p.apply("first", edits...)
	p.feed("/feed.atom")
	p.apply("second", "*/0001", "*/tag")
	entries, _ := p.feed("/feed.json")
	if n := slices.Index(entries, "-/0001 09:09.250"); n < 0 {
		t.Errorf("no tombstone: %.200q", entries)
	}
	if slices.ContainsFunc(entries, func(e string) bool { return strings.HasPrefix(e[1:], "/tag") }) {
		t.Errorf("the feed contains an archive: %.200q", entries)
	}
}
