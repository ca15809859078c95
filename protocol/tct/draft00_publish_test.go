package tct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

const base00 = "https://example.com/"

func pages00(n int) []*millrace.Page {
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

func view00(pages []*millrace.Page) *protocoltest.View {
	return protocoltest.NewView(millrace.Site{Base: base00, Title: "The site"}, pages, Draft00().Tagger)
}

// large00 returns the large documents of a view by path.
func large00(t *testing.T, v millrace.View) map[string]*millrace.Document {
	t.Helper()
	out := map[string]*millrace.Document{}
	for d, err := range draft00.NewPublisher(nil).All(t.Context(), v) {
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

func body00(t *testing.T, d *millrace.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func find(t *testing.T, p millrace.Publisher, v millrace.View, path string) (*millrace.Document, error) {
	t.Helper()
	return p.Find(t.Context(), v, httptest.NewRequest(http.MethodGet, "http://docs"+path, nil))
}

func TestDocumentHeader00(t *testing.T) {
	v := view00([]*millrace.Page{{URL: "/x/", Modified: time.Unix(1700000000, 0), Known: millrace.AllFields}})
	d, err := find(t, draft00.NewPublisher(nil), v, "/x/llm/")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"Content-Type":  {"application/json; charset=utf-8"},
		"Cache-Control": {"max-age=0, must-revalidate"},
		"Vary":          {"Accept, Accept-Encoding"},
		"Accept-Ranges": {"none"},
		"Last-Modified": {"Tue, 14 Nov 2023 22:13:20 GMT"},
		"Link":          {`<https://example.com/x/>; rel="canonical"`},
	}
	if diff := cmp.Diff(want, map[string][]string(d.Header)); diff != "" {
		t.Error(diff)
	}
	if !d.SharedETag || d.Large || d.Public || !isHash(d.ETag) {
		t.Errorf("%+v", d)
	}
}

// If a page has changed since its tag was computed, writing its document fails. It never
// writes bytes that do not match the tag.
func TestWriteVerifies00(t *testing.T) {
	d, err := find(t, draft00.NewPublisher(nil), lying00{view00([]*millrace.Page{{URL: "/x/", Title: "One"}})}, "/x/llm/")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b); err == nil || b.Len() > 0 {
		t.Errorf("%q, %v", b.String(), err)
	}
}

type lying00 struct{ millrace.View }

func (l lying00) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := l.View.Page(ctx, have)
	if err == nil {
		p.Title = "Two"
	}
	return p, err
}

// The list starts with the home page, has only content pages, and uses only the fingerprints
// of this draft.
func TestList00(t *testing.T) {
	docs := large00(t, view00([]*millrace.Page{
		{URL: "/b", Modified: time.Unix(1700000000, 0)}, {URL: "/"}, {URL: "/a/?q=1"}, {URL: "/tag/t/", Kind: millrace.Archive}, {URL: "https://else.example/x"},
	}))
	got := body00(t, docs[listName00])
	var urls []string
	if err := draft00.ScanList(strings.NewReader(got), 0, func(_ int, it *listItem, err error) bool {
		if err != nil || !isHash(it.ContentHash) || it.ETag != "" {
			t.Errorf("%+v %v", it, err)
		}
		urls = append(urls, it.CURL+" "+it.MURL+" "+string(it.Modified))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		base00 + " " + base00 + "llm/ ", base00 + "a/?q=1 " + base00 + "a/llm/?q=1 ", base00 + "b " + base00 + "b/llm/ 2023-11-14T22:13:20Z",
		"https://else.example/x " + base00 + "~else.example/x/llm/ ",
	}
	if diff := cmp.Diff(want, urls); diff != "" || len(docs) != 1 {
		t.Errorf("%d large documents, items (-want +got):\n%s", len(docs), diff)
	}
	if _, err := find(t, draft00.NewPublisher(nil), view00([]*millrace.Page{{URL: "/tag/t/", Kind: millrace.Archive}}), "/tag/t/llm/"); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("the M-URL of an archive: %v", err)
	}
	if l := docs[listName00].Header["Link"]; l != nil {
		t.Errorf("without a policy the list has Link %q", l)
	}
}

func TestOverview00(t *testing.T) {
	v := view00(pages00(30)[1:])
	docs := large00(t, v)
	d := docs["/llm/"]
	if d == nil || len(docs) != 2 {
		t.Fatalf("large documents: %v", docs)
	}
	text := body00(t, d)
	doc, hash, err := draft00.Decode([]byte(text))
	if err != nil || hashPrefix+hash != d.ETag || !isFingerprint(doc.Content, hash) {
		t.Fatalf("%s: %v", text, err)
	}
	if doc.CanonicalURL != base00 || doc.Title != "The site" || doc.Content != "The site\n\nSections:\n- p\n  "+base00+"p/0/" || doc.Modified == "" {
		t.Errorf("%+v", doc)
	}
	list := body00(t, docs[listName00])
	if !strings.HasPrefix(list, listHead+"\n"+`{"cUrl":"`+base00+`","mUrl":"`+base00+`llm/","modified":"`+doc.Modified+`","contentHash":"sha256-`+hash+`"}`) {
		t.Errorf("the list starts with %.200s", list)
	}
	links, err := draft00.NewPublisher(nil).Advertise(v).Page(t.Context(), "/")
	if err != nil || len(links) != 1 || links[0].URL != base00+"llm/" {
		t.Errorf("%v %v", links, err)
	}
	// A page of the site keeps its path.
	if docs = large00(t, view00([]*millrace.Page{{URL: "/llm/"}})); docs["/~2/llm/"] == nil {
		t.Errorf("large documents: %v", docs)
	}
	// Another page does not change the overview; another section does.
	site := millrace.Site{Base: base00, Title: "The site", Seq: 99, Time: v.Site().Time.Add(time.Hour)}
	if other := large00(t, protocoltest.NewView(site, pages00(30)[1:], Draft00().Tagger))["/llm/"]; other.ETag != d.ETag {
		t.Error("the overview has changed although no page has changed")
	}
	if other := large00(t, view00(pages00(31)[1:]))["/llm/"]; other.ETag != d.ETag {
		t.Error("a change of a page in a section has changed the overview")
	}
	more := slices.Concat(pages00(30)[1:], []*millrace.Page{{URL: "/q/", Title: "Q", Section: "q", Known: millrace.AllFields}})
	if other := large00(t, view00(more))["/llm/"]; other.ETag == d.ETag {
		t.Error("the overview of a site with another section is the same")
	}
}

// Policy and manifest are discovery documents; without a policy, nothing links to one.
func TestPolicyDocument(t *testing.T) {
	site := millrace.Site{Base: base00, EndpointBase: "https://docs.example/m/"}
	v := protocoltest.NewView(site, pages00(3), Draft00().Tagger)
	none := draft00.NewPublisher(nil)
	if d, err := find(t, none, v, policyName); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("%v %v", d, err)
	}
	manifest, err := find(t, none, v, manifestName)
	if err != nil || !manifest.Public || strings.Contains(body00(t, manifest), "policy") {
		t.Errorf("%+v %v", manifest, err)
	}
	p := draft00.NewPublisher(&protocol.PublisherOptions{Policy: &millrace.Policy{Revision: 2, Effective: time.Unix(1700000000, 0)}})
	d, err := find(t, p, v, policyName)
	if err != nil || !d.Public || !d.SharedETag || d.Header.Get("Last-Modified") != "Tue, 14 Nov 2023 22:13:20 GMT" {
		t.Fatalf("%+v %v", d, err)
	}
	if got, want := body00(t, d), `{"profile":"tct-policy-1","version":2,"effective":"2023-11-14T22:13:20Z","requirements":`; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s…", got, want)
	}
	for list, err := range p.All(t.Context(), v) {
		if err != nil || list.Path != listName00 || list.Header.Get("Link") != `</m/llm-policy.json>; rel="describedby"` {
			t.Errorf("%+v %v", list, err)
		}
		break
	}
	if manifest, err = find(t, p, v, manifestName); err != nil || !strings.Contains(body00(t, manifest), `"policy":"https://docs.example/m/llm-policy.json"`) {
		t.Errorf("%+v %v", manifest, err)
	}
}

func TestAnnounce00(t *testing.T) {
	site := millrace.Site{Base: base00, EndpointBase: "https://docs.example/m/"}
	v := protocoltest.NewView(site, append(pages00(20), &millrace.Page{URL: "/t", Kind: millrace.Archive}), Draft00().Tagger)
	n := draft00.NewPublisher(nil).Advertise(v)
	if len(n.Root) > 0 {
		t.Errorf("the notice for the root is %v", n.Root)
	}
	links, err := n.Page(t.Context(), "/p/3/")
	want := []millrace.Link{{URL: "https://docs.example/m/p/3/llm/", Rel: "alternate", Type: "application/json", HTML: true, NoField: true}}
	if err != nil || !cmp.Equal(links, want) {
		t.Errorf("%v %v", links, err)
	}
	for _, none := range []string{"/none", "/t"} {
		if links, err := n.Page(t.Context(), none); err != nil || len(links) != 0 {
			t.Errorf("%s: %v %v", none, links, err)
		}
	}
}

// An error of the view is not reported as a missing document.
func TestFindFails00(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := view00(pages00(3))
	if _, err := draft00.NewPublisher(nil).Find(ctx, v, httptest.NewRequest(http.MethodGet, "http://docs/p/1/llm/", nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := draft00.NewPublisher(nil).Advertise(v).Page(ctx, "/"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, err := range draft00.NewPublisher(nil).All(ctx, v) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// The page that "/" redirects to is used as the home page: it is first in the list, appears
// once, and replaces the overview.
func TestHomeRedirects00(t *testing.T) {
	site := millrace.Site{Base: base00, Title: "The site", Home: "/p/7/"}
	v := protocoltest.NewView(site, pages00(30)[1:], Draft00().Tagger)
	docs := large00(t, v)
	list := body00(t, docs[listName00])
	if len(docs) != 1 || !strings.HasPrefix(list, listHead+"\n"+`{"cUrl":"`+base00+`p/7/"`) || strings.Count(list, `/p/7/"`) != 1 || strings.Count(list, `"cUrl"`) != 29 {
		t.Errorf("%d documents; the list starts %.200s", len(docs), list)
	}
	if links, err := draft00.NewPublisher(nil).Advertise(v).Page(t.Context(), "/"); err != nil || len(links) != 0 {
		t.Errorf("links of a redirect: %v %v", links, err)
	}
	// A target without a tag, such as an archive, still has a document.
	site.Home = "/posts/"
	posts := &millrace.Page{URL: "/posts/", Title: "Posts", Kind: millrace.Archive, Blocks: millrace.TextBlocks("Of mills."), Known: millrace.AllFields}
	v = protocoltest.NewView(site, append(pages00(3)[1:], posts), Draft00().Tagger)
	docs = large00(t, v)
	if d := docs["/posts/llm/"]; d == nil || !strings.Contains(body00(t, d), `"content":"Posts\n\nOf mills."`) || !strings.HasPrefix(body00(t, docs[listName00]), listHead+"\n"+`{"cUrl":"`+base00+`posts/"`) {
		t.Errorf("large documents: %v", docs)
	}
}
