package tct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"

	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

const base01 = "https://example.com/"

func pages01(n int) []*millrace.Page {
	out := []*millrace.Page{{URL: "/", Title: "Home", Known: millrace.AllFields}}
	for i := range n - 1 {
		out = append(out, &millrace.Page{
			URL: fmt.Sprintf("/p/%d/", i), Title: fmt.Sprint("Page ", i), Section: "p",
			Modified: time.Unix(int64(1700000000+i), 0), Published: time.Unix(int64(1600000000+i%7), 0),
			Known: millrace.AllFields,
		})
	}
	return out
}

func view01(pages []*millrace.Page) *protocoltest.View {
	return protocoltest.NewView(millrace.Site{Base: base01, Title: "The site"}, pages, Draft01().Tagger)
}

// large01 returns the large documents of a view by path.
func large01(t *testing.T, v millrace.View, items int) map[string]*millrace.Document {
	t.Helper()
	out := map[string]*millrace.Document{}
	for d, err := range draft01.NewPublisher(&protocol.PublisherOptions{ListItems: items}).All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if !d.Large {
			break
		}
		out[d.Path] = d
	}
	return out
}

func body01(t *testing.T, d *millrace.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDocumentHeader01(t *testing.T) {
	v := view01([]*millrace.Page{{URL: "/x/", Modified: time.Unix(1700000000, 0), Known: millrace.AllFields}})
	d, err := draft01.NewPublisher(nil).Find(t.Context(), v, httptest.NewRequest(http.MethodGet, "http://docs/x/llm.json", nil))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"Content-Type":  {"application/json; charset=utf-8"},
		"Cache-Control": {"max-age=0, must-revalidate"},
		"Vary":          {"Accept-Encoding"},
		"Accept-Ranges": {"none"},
		"Last-Modified": {"Tue, 14 Nov 2023 22:13:20 GMT"},
		"Link":          {`<https://example.com/x/>; rel="canonical"`},
	}
	if diff := cmp.Diff(want, map[string][]string(d.Header)); diff != "" {
		t.Error(diff)
	}
	if !d.SharedETag || d.Large || !isLowerHash(d.ETag) {
		t.Errorf("%+v", d)
	}
}

// If a page has changed since its tag was computed, writing its document fails. It never
// writes bytes that do not match the tag.
func TestWriteVerifies01(t *testing.T) {
	v := view01([]*millrace.Page{{URL: "/x/", Title: "One"}})
	d, err := draft01.NewPublisher(nil).Find(t.Context(), lying01{v}, httptest.NewRequest(http.MethodGet, "http://docs/x/llm.json", nil))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b); err == nil || b.Len() > 0 {
		t.Errorf("%q, %v", b.String(), err)
	}
}

type lying01 struct{ millrace.View }

func (l lying01) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := l.View.Page(ctx, have)
	if err == nil {
		p.Title = "Two"
	}
	return p, err
}

func TestShards(t *testing.T) {
	for _, c := range []struct{ pages, items, want int }{
		{1, 8, 1}, {8, 8, 1}, {9, 8, 2}, {14, 8, 2}, {15, 8, 4}, {100, 8, 16}, {1_000_000, 50_000, 32}, {3, 1, 4}, {100_000_000, 50_000, maxShards},
	} {
		p := draft01.NewPublisher(&protocol.PublisherOptions{ListItems: c.items}).(*publisher)
		if got := p.shards(millrace.Site{Pages: c.pages}); got != c.want {
			t.Errorf("%d pages in lists of %d: %d lists, want %d", c.pages, c.items, got, c.want)
		}
	}
	const n, shards = 100_000, 32
	var count [shards]int
	for i := range n {
		count[shardOf(fmt.Sprintf("/blog/%d/", i), shards)]++
	}
	for i, c := range count {
		if math.Abs(float64(c)-n/shards) > 0.1*n/shards {
			t.Errorf("list %d has %d of %d pages", i, c, n)
		}
	}
}

// Every item is in one list, lists are in the order of identities, and a
// change of one page touches exactly the lists whose bytes it changes.
func TestListsTouched(t *testing.T) {
	before := append(pages01(60), &millrace.Page{URL: "/r/", Title: "Rival"}, &millrace.Page{URL: "/s/"})
	for _, edit := range []struct {
		name string
		url  string
		do   func([]*millrace.Page) []*millrace.Page
	}{
		{"changed", "/p/7/", func(ps []*millrace.Page) []*millrace.Page {
			p := ps[8].Clone()
			p.Title = "Another"
			return append(append(slices.Clone(ps[:8]), p), ps[9:]...)
		}},
		{"a rival came", "/r", func(ps []*millrace.Page) []*millrace.Page {
			return append(slices.Clone(ps), &millrace.Page{URL: "/r", Kind: millrace.Archive})
		}},
		{"a page took a name", "/s/llm.json", func(ps []*millrace.Page) []*millrace.Page {
			return append(slices.Clone(ps), &millrace.Page{URL: "/s/llm.json"})
		}},
		{"the home page went", "/", func(ps []*millrace.Page) []*millrace.Page { return ps[1:] }},
	} {
		t.Run(edit.name, func(t *testing.T) {
			old, now := large01(t, view01(before), 8), large01(t, view01(edit.do(before)), 8)
			items := 0
			for path, d := range now {
				if path == "/llm.json" {
					continue
				}
				text := body01(t, d)
				items += strings.Count(text, `"cUrl"`)
				was := old[path]
				if was == nil {
					t.Fatalf("%s is new", path)
				}
				if body01(t, was) != text && len(d.Parts.Changed(base01+edit.url[1:])) == 0 {
					t.Errorf("%s has changed, but reports that it is independent of %s", path, edit.url)
				}
			}
			if want := len(edit.do(before)); items != want && edit.name == "changed" {
				t.Errorf("the lists have %d items, want %d", items, want)
			}
		})
	}
}

func TestList01(t *testing.T) {
	docs := large01(t, view01([]*millrace.Page{{URL: "/b"}, {URL: "/"}, {URL: "/a/?q=1"}, {URL: "/t", Kind: millrace.Archive}}), 0)
	got := body01(t, docs["/llm-pages.json"])
	var urls []string
	if err := draft01.ScanList(strings.NewReader(got), 0, func(_ int, it *listItem, err error) bool {
		if err != nil || !isLowerHash(it.ETag) {
			t.Errorf("%+v %v", it, err)
		}
		urls = append(urls, it.CURL+" "+it.MURL)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{base01 + " " + base01 + "llm.json", base01 + "a/?q=1 " + base01 + "a/llm.json?q=1", base01 + "b " + base01 + "b/llm.json"}
	if diff := cmp.Diff(want, urls); diff != "" || len(docs) != 1 {
		t.Errorf("%d large documents, items (-want +got):\n%s", len(docs), diff)
	}
}

func TestOverview01(t *testing.T) {
	v := view01(pages01(30)[1:])
	docs := large01(t, v, 0)
	d := docs["/llm.json"]
	if d == nil || len(docs) != 2 {
		t.Fatalf("large documents: %v", docs)
	}
	text := body01(t, d)
	doc, hash, err := draft01.Decode([]byte(text))
	if err != nil || hash != d.ETag || !isHashOf([]byte(text), hash) {
		t.Fatalf("%s: %v", text, err)
	}
	if doc.CanonicalURL != base01 || doc.Title != "The site" || doc.Content != "Sections:\n- p\n  "+base01+"p/0/" || doc.Modified == "" {
		t.Errorf("%+v", doc)
	}
	list := body01(t, docs["/llm-pages.json"])
	if !strings.HasPrefix(list, listHead+"\n"+`{"cUrl":"`+base01+`","mUrl":"`+base01+`llm.json","etag":"`+hash+`"}`) {
		t.Errorf("the list starts with %.200s", list)
	}
	links, err := draft01.NewPublisher(nil).Advertise(v).Page(t.Context(), "/")
	if err != nil || len(links) != 1 || links[0].URL != base01+"llm.json" {
		t.Errorf("%v %v", links, err)
	}
	// A page of the site keeps its path.
	docs = large01(t, view01([]*millrace.Page{{URL: "/llm.json"}}), 0)
	if docs["/~2/llm.json"] == nil {
		t.Errorf("large documents: %v", docs)
	}
	// Another page does not change the overview; another section does.
	if other := large01(t, view01(pages01(30)[1:]), 0)["/llm.json"]; other.ETag != hash {
		t.Error("the overview of the same site differs")
	}
	if other := large01(t, view01(pages01(31)[1:]), 0)["/llm.json"]; other.ETag != hash {
		t.Error("a change of a page in a section has changed the overview")
	}
	more := slices.Concat(pages01(30)[1:], []*millrace.Page{{URL: "/q/", Title: "Q", Section: "q", Known: millrace.AllFields}})
	if other := large01(t, view01(more), 0)["/llm.json"]; other.ETag == hash {
		t.Error("the overview of a site with another section is the same")
	}
	site := millrace.Site{Base: base01, Title: "The site", Seq: 99, Time: v.Site().Time.Add(time.Hour)}
	later := protocoltest.NewView(site, pages01(30)[1:], Draft01().Tagger)
	if other := large01(t, later, 0)["/llm.json"]; other.ETag != hash {
		t.Error("the overview has changed although no page has changed")
	}
}

func TestAnnounce01(t *testing.T) {
	site := millrace.Site{Base: base01, EndpointBase: "https://docs.example/m/"}
	v := protocoltest.NewView(site, append(pages01(20), &millrace.Page{URL: "/t", Kind: millrace.Archive}), Draft01().Tagger)
	n := draft01.NewPublisher(&protocol.PublisherOptions{ListItems: 12}).Advertise(v)
	var root []string
	for _, l := range n.Root {
		root = append(root, l.String())
	}
	want := []string{
		`</m/llm-pages-1-of-2.json>; rel="index"; type="application/json"`,
		`</m/llm-pages-2-of-2.json>; rel="index"; type="application/json"`,
	}
	if !cmp.Equal(root, want) {
		t.Errorf("root links %q", root)
	}
	links, err := n.Page(t.Context(), "/p/3/")
	if err != nil || !cmp.Equal(links, []millrace.Link{{URL: "https://docs.example/m/p/3/llm.json", Rel: "alternate", Type: "application/json", HTML: true}}) {
		t.Errorf("%v %v", links, err)
	}
	also := draft01.NewPublisher(&protocol.PublisherOptions{Protocols: []string{"scp", "tct-00"}}).Advertise(v)
	if links, err := also.Page(t.Context(), "/p/3/"); err != nil || len(links) != 1 || !links[0].HTML || links[0].NoField {
		t.Errorf("beside draft-00: %v %v", links, err)
	}
	for _, none := range []string{"/none", "/t"} {
		if links, err := n.Page(t.Context(), none); err != nil || len(links) != 0 {
			t.Errorf("%s: %v %v", none, links, err)
		}
	}
}

// An error of the view is not reported as a missing document.
func TestFindFails01(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := view01(pages01(3))
	if _, err := draft01.NewPublisher(nil).Find(ctx, v, httptest.NewRequest(http.MethodGet, "http://docs/p/1/llm.json", nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := draft01.NewPublisher(nil).Advertise(v).Page(ctx, "/"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, err := range draft01.NewPublisher(nil).All(ctx, v) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	v := view01(pages01(1000))
	p := draft01.NewPublisher(nil)
	r := httptest.NewRequest(http.MethodGet, "http://docs/p/500/llm.json", nil)
	for b.Loop() {
		if _, err := p.Find(b.Context(), v, r); err != nil {
			b.Fatal(err)
		}
	}
}

// A site whose "/" redirects to one of its pages has no overview, and all its pages are in the
// lists once. Any change may change the first list, because no change names the target of the
// redirect.
func TestHomeRedirects01(t *testing.T) {
	v := protocoltest.NewView(millrace.Site{Base: base01, Title: "The site", Home: "/p/7/"}, pages01(30)[1:], Draft01().Tagger)
	docs := large01(t, v, 0)
	list := docs["/llm-pages.json"]
	if len(docs) != 1 || strings.Count(body01(t, list), `"cUrl"`) != 29 {
		t.Errorf("%d documents: %s", len(docs), body01(t, list))
	}
	if links, err := draft01.NewPublisher(nil).Advertise(v).Page(t.Context(), "/"); err != nil || len(links) != 0 {
		t.Errorf("links of a redirect: %v %v", links, err)
	}
	// A target without a tag, such as a listing, still has a document, numbered like any
	// other.
	site := millrace.Site{Base: base01, Title: "The site", Home: "/posts/"}
	posts := &millrace.Page{URL: "/posts/", Title: "Posts", Kind: millrace.Listing, Blocks: millrace.TextBlocks("Of mills."), Known: millrace.AllFields}
	v = protocoltest.NewView(site, append(pages01(3)[1:], posts, &millrace.Page{URL: "/posts", Title: "Rival", Known: millrace.AllFields}), Draft01().Tagger)
	docs = large01(t, v, 0)
	d := docs["/posts/~2/llm.json"]
	if d == nil || !strings.Contains(body01(t, d), `"content":"Of mills."`) || !strings.HasPrefix(body01(t, docs["/llm-pages.json"]), listHead+"\n"+`{"cUrl":"`+base01+`posts/","mUrl":"`+base01+`posts/~2/llm.json"`) {
		t.Fatalf("large documents: %v", docs)
	}
	if links, err := draft01.NewPublisher(nil).Advertise(v).Page(t.Context(), "/posts/"); err != nil || len(links) != 1 || links[0].URL != base01+d.Path[1:] {
		t.Errorf("links of the home page: %v %v", links, err)
	}
}
