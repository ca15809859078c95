package millrace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
)

func fullPage() *millrace.Page {
	return &millrace.Page{
		URL: "/leat/", Title: "Leats", Description: "d", Summary: "s", Author: "A. Miller",
		Published: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC), Modified: time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC),
		Language: "en", Section: "water", Tags: []string{"x"}, Kind: millrace.Article,
		Schema: []json.RawMessage{json.RawMessage(`{"@type":"Article"}`)}, Blocks: everyBlock(),
		Extra: map[string]json.RawMessage{"arc": json.RawMessage(`{}`)}, Known: millrace.AllFields, Detail: millrace.DetailBlocks,
	}
}

func TestRevision(t *testing.T) {
	base := fullPage().Revision()
	same := fullPage()
	same.Version = "other"
	same.Published = same.Published.In(time.FixedZone("", 3600)).Add(400 * time.Millisecond)
	if same.Revision() != base {
		t.Error("the revision depends on the validator, the time zone or the milliseconds")
	}
	for name, change := range map[string]func(*millrace.Page){
		"title":    func(p *millrace.Page) { p.Title += "!" },
		"modified": func(p *millrace.Page) { p.Modified = p.Modified.Add(time.Second) },
		"text":     func(p *millrace.Page) { p.Blocks[0].Text += "." },
		"schema":   func(p *millrace.Page) { p.Schema = nil },
		"noindex":  func(p *millrace.Page) { p.Access.NoIndex = true },
		"known":    func(p *millrace.Page) { p.Known &^= millrace.FieldAuthor },
	} {
		p := fullPage()
		change(p)
		if p.Revision() == base {
			t.Errorf("%s: the revision did not change", name)
		}
	}
	hint := fullPage()
	hint.Known &^= millrace.FieldModified
	r := hint.Revision()
	if hint.Modified = hint.Modified.Add(time.Hour); hint.Revision() != r {
		t.Error("the revision depends on a Modified that is not known")
	}
	far := fullPage()
	far.Published, base = time.Unix(1e12, 0), func() string { p := fullPage(); p.Published = time.Time{}; return p.Revision() }()
	if far.Revision() != base {
		t.Error("an unrepresentable date is not zero")
	}
	base = fullPage().Revision()
	broken := fullPage()
	broken.Schema = append(broken.Schema, json.RawMessage("{"))
	if broken.Revision() != base {
		t.Error("an invalid element of Schema is not omitted")
	}
}

func TestMerge(t *testing.T) {
	stored := fullPage()
	for _, tt := range []struct {
		name    string
		in      *millrace.Page
		changed bool
		want    func(*millrace.Page)
	}{
		{"the same", fullPage(), false, func(*millrace.Page) {}},
		{
			"an unknown field does not overwrite",
			&millrace.Page{Title: "Leats", Known: millrace.FieldTitle},
			false, func(*millrace.Page) {},
		},
		{
			"a known empty field overwrites",
			&millrace.Page{Known: millrace.FieldAuthor},
			true, func(p *millrace.Page) { p.Author = "" },
		},
		{
			"content of lower detail with the same text keeps the blocks",
			&millrace.Page{Blocks: millrace.TextBlocks(stored.Text()), Known: millrace.FieldContent, Detail: millrace.DetailText},
			false, func(*millrace.Page) {},
		},
		{
			"content of lower detail with another text replaces the blocks",
			&millrace.Page{Blocks: millrace.TextBlocks("New."), Known: millrace.FieldContent, Detail: millrace.DetailText},
			true, func(p *millrace.Page) {
				p.Blocks, p.Detail = millrace.TextBlocks("New."), millrace.DetailText
			},
		},
		{
			"a summary keeps the content",
			&millrace.Page{Summary: "new", Known: millrace.FieldSummary | millrace.FieldContent, Detail: millrace.DetailSummary},
			true, func(p *millrace.Page) { p.Summary = "new" },
		},
		{
			"a page without known fields",
			&millrace.Page{Title: "other"}, false, func(*millrace.Page) {},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, changed := millrace.Merge(stored, tt.in)
			want := fullPage()
			tt.want(want)
			if d := cmp.Diff(want, got); d != "" || changed != tt.changed {
				t.Errorf("changed = %v; (-want +got):\n%s", changed, d)
			}
			if d := cmp.Diff(fullPage(), stored); d != "" {
				t.Errorf("the stored page has changed: %s", d)
			}
		})
	}
	if got, changed := millrace.Merge(nil, fullPage()); !changed || !cmp.Equal(got, fullPage()) {
		t.Error("a first page is changed")
	}
}

func TestVisibility(t *testing.T) {
	hidden := func(v millrace.Visibility, url string) bool {
		_, ok := v.Apply(&millrace.Page{URL: url})
		return !ok
	}
	v := millrace.Visibility{Exclude: []string{"/private/", "/a"}}
	for url, want := range map[string]bool{
		"/private": true, "/private/": true, "/private/x": true, "/PRIVATE/x?y": true, "/privateer": false,
		"/a": true, "/a?x=1": true, "/ab": false, "/b/a": false, "/": false, "/cart": false,
	} {
		if hidden(v, url) != want {
			t.Errorf("%s: hidden = %v", url, !want)
		}
	}
	v = millrace.Visibility{Exclude: []string{"drafts", "", "/café", "/a b"}}
	for url, want := range map[string]bool{
		"/drafts/x": true, "/caf%C3%A9/x": true, "/CAF%C3%89": true, "/a%20b": true, "/draft": false, "/": false, "/100%": false,
	} {
		if hidden(v, url) != want {
			t.Errorf("%s: hidden = %v", url, !want)
		}
	}
	if !hidden(millrace.Visibility{Exclude: []string{"/caf%c3%a9"}}, "/caf%C3%A9") || !hidden(millrace.Visibility{Exclude: []string{"/"}}, "/x") {
		t.Error("an escaped path or the root does not hide")
	}
	// A path that a server may resolve to a hidden path is hidden.
	v = millrace.Visibility{Exclude: []string{"/private/area"}}
	for url, want := range map[string]bool{
		"//private//area/x": true, "/./private/./area": true, "/x/../private/area": true, "/../private/area": true,
		"/private%2Farea": true, "/private%2farea%2Fx": true, "/x%2f..%2fprivate/area": true, "/%2e%2e/private/area": true,
		"/%70rivate/%61rea": true, "/%2570rivate/area": true, "/private%5Carea": true, "/private%252Farea": true,
		"/private;v=1/area;x": true, "/private/%2e/area": true, "/PRIVATE%2fAREA?x": true,
		"/private/x/../area": true, "/private/area/../x": false, "/private/areal": false, "/private": false, "/x/private/area": false,
		"/private/ar%25ea": false, "/?/private/area": false,
	} {
		if hidden(v, url) != want {
			t.Errorf("%s: hidden = %v", url, !want)
		}
	}
	if !hidden(millrace.Visibility{}, "/wp-admin/x") || hidden(millrace.Visibility{Exclude: []string{}}, "/wp-admin/x") {
		t.Error("nil does not use DefaultExclude")
	}
	for name, p := range map[string]*millrace.Page{
		"noindex": {URL: "/x", Access: millrace.Access{NoIndex: true}},
		"auth":    {URL: "/x", Access: millrace.Access{Auth: true}},
		"kind":    {URL: "/x", Kind: millrace.Forum},
	} {
		if _, ok := (millrace.Visibility{Kinds: []millrace.PageKind{millrace.Forum}}).Apply(p); ok {
			t.Errorf("%s: visible", name)
		}
	}
	if (millrace.Visibility{}).Fingerprint() == (millrace.Visibility{Authors: millrace.AuthorHidden}).Fingerprint() {
		t.Error("hiding authors does not change the fingerprint")
	}
	if (millrace.Visibility{}).Fingerprint() != (millrace.Visibility{Exclude: millrace.DefaultExclude}).Fingerprint() {
		t.Error("an explicit DefaultExclude has another fingerprint than nil")
	}
}

func TestScrub(t *testing.T) {
	in := &millrace.Page{
		Author: "Ann Miller <ann@example.com>",
		Schema: []json.RawMessage{
			json.RawMessage(`{"@type":"Article","headline":"<b>","wordCount":1e3,"author":{"@type":"Person","name":"Ann","email":"a@example.com","@id":"#ann","address":{"x":1}},"identifier":"42","publisher":{"@type":"Organization","telephone":"1","name":"Mill"},"url":"mailto:x@example.com"}`),
			json.RawMessage(`{"@context":{"s":"http://schema.org/"},"s:email":"a@example.com","http://schema.org/telephone":"1","contact":"MAILTO:a@example.com","schema:author":"Ann","kind":"tel","s:reviewer":{"@type":"schema:Person","@id":"#ann","name":"Ann"},"x":1}`),
			json.RawMessage(`{"author":["Ann <ann@example.com>",{"@type":"Person","name":"Bo, bo@example.com"},"cy@example.com"],"creator":"dan@example.com","name":"a@b.example"}`),
			json.RawMessage(`not json`), json.RawMessage(`[1]`),
		},
	}
	got, _ := millrace.Visibility{}.Apply(in)
	want := `{"@type":"Article","author":{"@type":"Person","name":"Ann"},"headline":"<b>","publisher":{"@type":"Organization","name":"Mill"},"wordCount":1e3}`
	want2 := `{"@context":{"s":"http://schema.org/"},"kind":"tel","s:reviewer":{"@type":"schema:Person","name":"Ann"},"schema:author":"Ann","x":1}`
	want3 := `{"author":["Ann",{"@type":"Person","name":"Bo"}],"name":"a@b.example"}`
	if len(got.Schema) != 3 || string(got.Schema[0]) != want || string(got.Schema[1]) != want2 || string(got.Schema[2]) != want3 {
		t.Errorf("got  %s\nwant %s\n     %s\n     %s", got.Schema, want, want2, want3)
	}
	if got.Author != "Ann Miller" {
		t.Errorf("author %q", got.Author)
	}
	got, _ = millrace.Visibility{Authors: millrace.AuthorHidden}.Apply(in)
	want = `{"@type":"Article","headline":"<b>","publisher":{"@type":"Organization","name":"Mill"},"wordCount":1e3}`
	want2 = `{"@context":{"s":"http://schema.org/"},"kind":"tel","x":1}`
	if len(got.Schema) != 3 || string(got.Schema[0]) != want || string(got.Schema[1]) != want2 ||
		string(got.Schema[2]) != `{"name":"a@b.example"}` || got.Author != "" {
		t.Errorf("with authors hidden: %q, %s", got.Author, got.Schema)
	}
	again, _ := millrace.Visibility{}.Apply(got)
	if !cmp.Equal(again.Schema, got.Schema) {
		t.Error("scrubbing is not idempotent")
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	f := &millrace.FormatError{Protocol: "tct-01", URL: "https://example.com/llm-pages.json", Position: "/items/3/etag", Section: "1.7.1", Reason: "no string", Err: cause}
	if !errors.Is(f, millrace.ErrInvalid) || !errors.Is(f, cause) {
		t.Error("a FormatError does not wrap its causes")
	}
	for err, code := range map[error]int{
		nil: 200, fmt.Errorf("x: %w", millrace.ErrNotFound): 404, f: 400, millrace.ErrUnmodified: 304, io.EOF: 500,
		millrace.ErrUnavailable: http.StatusServiceUnavailable,
	} {
		if got := millrace.Status(err); got != code {
			t.Errorf("Status(%v) = %d, want %d", err, got, code)
		}
	}
	for want, err := range map[string]error{
		"":                  nil,
		"internal":          io.EOF,
		"canceled":          fmt.Errorf("x: %w", context.Canceled),
		"timeout":           context.DeadlineExceeded,
		"not-found":         fmt.Errorf("x: %w", millrace.ErrNotFound),
		"unavailable":       fmt.Errorf("x: %w", errors.Join(cause, millrace.ErrUnavailable, context.Canceled)),
		"invalid":           &millrace.FormatError{Reason: "bad"},
		"tct-01/1.7.1":      f,
		"tct-01/1.7.1/etag": fmt.Errorf("x: %w", &millrace.FormatError{Protocol: "tct-01", Section: "1.7.1", Code: "tct-01/1.7.1/etag", Err: millrace.Coded("inner", cause)}),
		"inner":             &millrace.SkipError{Err: &millrace.FormatError{Protocol: "tct-01", Section: "1.7.1", Err: millrace.Coded("inner", cause)}},
		"outer":             fmt.Errorf("%w: %w", millrace.ErrForbidden, millrace.Coded("outer", millrace.Coded("inner", millrace.ErrInvalid))),
		"no-page":           &millrace.RequestError{Status: 404, Code: "NO_PAGE"},
		"forbidden":         &millrace.RequestError{Status: 402},
	} {
		if got := millrace.ErrorCode(err); got != want {
			t.Errorf("ErrorCode(%v) = %q, want %q", err, got, want)
		}
	}
	if err := millrace.Coded("word", millrace.ErrConflict); !errors.Is(err, millrace.ErrConflict) || millrace.Status(err) != 409 || err.Error() != millrace.ErrConflict.Error() {
		t.Errorf("%v does not wrap its sentinel", err)
	}
	for code, want := range map[int]error{
		200: nil, 206: nil, 304: millrace.ErrUnmodified, 404: millrace.ErrNotFound, 410: millrace.ErrNotFound, 401: millrace.ErrForbidden,
		429: millrace.ErrUnavailable, 503: millrace.ErrUnavailable, 400: millrace.ErrInvalid, 302: millrace.ErrInvalid,
	} {
		if got := millrace.StatusErr(code); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Errorf("StatusErr(%d) = %v, want %v", code, got, want)
		}
	}
}

// No protocol publishes an e-mail address in a summary.
func TestSummaryMail(t *testing.T) {
	for in, want := range map[string]string{
		"":                                       "",
		"The mill  turns.":                       "The mill  turns.",
		"Write to mill@mill.example, or call.":   "Write to or call.",
		"By A <a@mill.example> mailto:b@c.d, 1@": "By A 1@",
		"root@localhost is no address":           "root@localhost is no address",
	} {
		p, ok := millrace.Visibility{}.Apply(&millrace.Page{URL: "/a", Summary: in, Description: in})
		if !ok || p.Summary != want || p.Description != want {
			t.Errorf("%q: %q, %q", in, p.Summary, p.Description)
		}
	}
}
