package tct

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

const start03 = `{"canonical_url":"https://`

// Documents with their ETags: the example in Appendix C of the draft, and others whose tags
// were computed by other implementations of RFC 8785 and SHA-256.
func TestVectors03(t *testing.T) {
	for _, c := range []struct {
		body, tag string
		want      document
		md        bool
	}{
		{
			start03 + `example.com/post/","content":"Hello","profile":"` + pageProfile03 + `","title":"Example"}`,
			"sha256-d5a54a6e2a2ee0f0b84592d4d6c9f5361aeea41e4cb23550f4804e3ea29eaa2c",
			document{CanonicalURL: "https://example.com/post/", Title: "Example", Content: "Hello"},
			false,
		},
		{
			start03 + `mill.example/wheels/","content":"Wheels\n\nAn overshot wheel takes water at the top.\tÆ 🛞\n","content_media_type":"text/plain; charset=utf-8",` +
				`"language":"en-GB","profile":"` + pageProfile03 + `","title":"Wheels — “overshot” & breast"}`,
			"sha256-c7ccb0e8588a6fe5889fff09f0bc1f69a42987893cb09bfc28d6b83238d5d0e6",
			document{
				CanonicalURL: "https://mill.example/wheels/", Title: "Wheels — “overshot” & breast", Content: "Wheels\n\nAn overshot wheel takes water at the top.\tÆ 🛞\n",
				ContentType: "text/plain; charset=utf-8", Language: "en-GB",
			},
			false,
		},
		{
			start03 + `mill.example/","content":"# Mill\n\nSee [wheels](https://mill.example/wheels/).","content_media_type":"text/markdown; charset=utf-8; variant=CommonMark",` +
				`"language":"en","lastModified":"2026-08-01T10:00:00Z","profile":"` + pageProfile03 + `","title":"Mill","wordCount":4}`,
			"sha256-8416a3b75a50d9c1520f7dc77ebe9a3c155b2d0cf76098111234405b38c83396",
			document{
				CanonicalURL: "https://mill.example/", Title: "Mill", Content: "# Mill\n\nSee [wheels](https://mill.example/wheels/).",
				ContentType: "text/markdown; charset=utf-8; variant=CommonMark", Language: "en", Modified: "2026-08-01T10:00:00Z",
			},
			true,
		},
	} {
		d, tag, err := draft03.Decode([]byte(c.body))
		if err != nil || tag != c.tag {
			t.Fatalf("%s: tag %s, want %s (%v)", c.body, tag, c.tag, err)
		}
		if diff := cmp.Diff(&c.want, d); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if body, tag := draft03.Encode(d); !strings.Contains(c.body, "wordCount") && (string(body) != c.body || tag != c.tag) {
			t.Errorf("written as %s, tag %s, want %s", body, tag, c.body)
		}
		if p := draft03.Page(d); (p.Detail == millrace.DetailBlocks) != c.md || c.md && (len(p.Blocks) != 1 || len(p.Blocks[0].Spans) != 1) {
			t.Errorf("%s has the blocks %+v", c.body, p.Blocks)
		}
	}
}

// A published document has the same bytes as that of the reference.
func TestDocument03(t *testing.T) {
	p := &millrace.Page{
		URL: "/", Title: "A\u2028B", Language: "en_GB", Author: "A.\u2028Writer", Description: "D\u2029E",
		Schema: []json.RawMessage{[]byte(`{"@type":"Thing","x":{}}`), []byte(`{"@type":"Thing","x":{"0":1}}`), []byte(`{"@type":"Thing","text":"f(){}"}`)},
		Blocks: []millrace.Block{
			{Type: millrace.HeadingBlock, Level: 2, Text: "Water"},
			{Type: millrace.TextBlock, Text: "one\u2028two"},
			{Type: millrace.ListBlock, Items: []millrace.Item{{Text: "x"}, {Text: "y"}}},
		},
	}
	body, tag := draft03.Encode(draft03.Document(millrace.Site{Base: "https://e.com/"}, p))
	want := `{"author":{"name":"A.\nWriter"},"canonical_url":"https://e.com/","content":"## Water\n\none two\n\n- x\n- y\n","content_media_type":"text/markdown; charset=utf-8; variant=GFM",` +
		`"excerpt":"D\nE","profile":"` + pageProfile03 + `","structured_data":[{"@type":"Thing","text":"f(){}"}],"title":"A\nB"}`
	if string(body) != want || tag != hashPrefix+canon.SHA256Hex(body) {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if c, err := jsonio.Canonical(body, nil); err != nil || string(c) != string(body) {
		t.Errorf("the document is not canonical: %s (%v)", c, err)
	}
}

// The overview of a site without a home page has the same form as any other document.
func TestOverview03(t *testing.T) {
	v := protocoltest.NewView(millrace.Site{Base: "https://e.com/", Title: "A\u2028B", Language: "en_"}, []*millrace.Page{{URL: "/a", Title: "A *b*", Known: millrace.AllFields}}, Draft03().Tagger)
	var b strings.Builder
	for d, err := range Draft03().NewPublisher(nil).All(t.Context(), v) {
		if err == nil && d.Path == "/tct.json" {
			err = d.Write(t.Context(), &b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := `{"canonical_url":"https://e.com/","content":"Pages:\\\n\\- A \\*b\\*\\\n[https://e.com/a](https://e.com/a)\n","content_media_type":"text/markdown; charset=utf-8; variant=GFM",` +
		`"profile":"` + pageProfile03 + `","title":"A\nB"}`
	if b.String() != want {
		t.Errorf("got  %s\nwant %s", b.String(), want)
	}
}

func TestForms03(t *testing.T) {
	for form, values := range map[string]struct{ good, bad string }{
		"language": {"en,sr-Latn-RS,zh-cmn-Hans-CN,de-CH-1901,x-internal,i-klingon,EN-gb", ",e,en_,en--US,en-US-,en US"},
		"media":    {"text/plain,text/markdown; charset=utf-8; variant=GFM,text/plain;a=\"b;c\"", ",text,text/plain;,text/plain; a = b,/x"},
	} {
		match := languageTag.MatchString
		if form == "media" {
			match = mediaTypeForm.MatchString
		}
		for _, v := range strings.Split(values.good, ",") {
			if !match(v) {
				t.Errorf("%s: %q is refused", form, v)
			}
		}
		for _, v := range strings.Split(values.bad, ",") {
			if match(v) {
				t.Errorf("%s: %q is taken", form, v)
			}
		}
	}
}

// The lists of a large site: each is canonical, and the root links to all of them.
func TestLists03(t *testing.T) {
	var pages []*millrace.Page
	for _, u := range []string{"/", "/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"} {
		pages = append(pages, &millrace.Page{URL: u, Title: u, Known: millrace.AllFields})
	}
	v := protocoltest.NewView(millrace.Site{Base: "https://e.com/", EndpointBase: "https://docs.e.com/m/"}, pages, Draft03().Tagger)
	p := Draft03().NewPublisher(&protocol.PublisherOptions{ListItems: 4})
	items := 0
	var lists []string
	for d, err := range p.All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if !d.Large {
			break
		}
		var b strings.Builder
		if err := d.Write(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if c, err := jsonio.Canonical([]byte(b.String()), nil); err != nil || string(c) != b.String() || !d.DigestETag {
			t.Errorf("%s: %s (%v)", d.Path, b.String(), err)
		}
		items += strings.Count(b.String(), "cUrl")
		lists = append(lists, `<https://docs.e.com/m`+d.Path+`>; rel="index"; type="application/json"`)
	}
	for pages, want := range map[int]int{19_998: 1, 19_999: 2} { // 19,999 items with an overview
		if n := Draft03().NewPublisher(nil).(*publisher).shards(millrace.Site{Pages: pages}); n != want {
			t.Errorf("%d pages have %d lists, want %d", pages, n, want)
		}
	}
	var root []string
	for _, l := range p.Advertise(v).Root {
		root = append(root, l.String())
	}
	if diff := cmp.Diff(lists, root); diff != "" || len(lists) != 4 || items != len(pages) {
		t.Errorf("%d lists with %d items (-published +advertised):\n%s", len(lists), items, diff)
	}
}

// A draft-02 site is checked by the rules that both drafts have.
func TestCheckDraft02(t *testing.T) {
	send := func(w http.ResponseWriter, body string) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const at = "https://site.example"
		switch r.URL.Path {
		case "/l.json":
			send(w, `{"version":2,"profile":"tct-1","items":[{"cUrl":"`+at+`/","mUrl":"`+at+`/m","etag":"x","modified":"2026-05-01"}]}`)
		case "/m":
			w.Header().Set("Link", `</>; rel=canonical`)
			w.Header().Set("ETag", `"x"`)
			if strings.Contains(r.Header.Get("If-None-Match"), `"x"`) || r.Header.Get("If-None-Match") == "*" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			send(w, `{"profile":"tct-1","canonical_url":"`+at+`/","title":"T"}`)
		default:
			w.Header().Set("Link", `</l.json>; rel=index; type=application/json, </m>; rel=alternate; type=application/json`)
		}
	})
	target, err := check.NewTarget("https://site.example/", &http.Client{Transport: protocoltest.Answer(h, "site.example")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := protocoltest.Checked(t, name03, Draft03().Rules(), target)
	protocoltest.OneFailed(t, r, name03+"/page/content")
}
