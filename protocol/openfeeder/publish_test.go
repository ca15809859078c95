package openfeeder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

const base = "https://mill.example/"

func day(n int) time.Time { return time.Date(2026, 1, n, 12, 0, 0, 0, time.UTC) }

// mill returns a small site whose pages fill every kind of document.
func mill() []*millrace.Page {
	return []*millrace.Page{
		{
			URL: "/", Title: "The mill", Description: "A mill and its water.", Language: "en", Modified: day(3),
			Blocks: millrace.TextBlocks("Welcome."), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
		},
		{
			URL: "/gate/", Title: "The gate", Author: "Ada Miller", Language: "en-GB", Published: day(5), Modified: day(7),
			Blocks: []millrace.Block{
				{Type: millrace.HeadingBlock, Level: 2, Text: "Opening"},
				{Type: millrace.TextBlock, Text: "Lift the paddle. Then wait for the water."},
				{Type: millrace.ListBlock, Ordered: true, Items: []millrace.Item{{Text: "Lift."}, {Text: "Wait."}}},
				{Type: millrace.CodeBlock, Language: "go", Text: "\tgate.Open()\n"},
				{Type: millrace.QuoteBlock, Blocks: millrace.TextBlocks("Water is patient."), Cite: "A miller"},
			},
			Known: millrace.AllFields, Detail: millrace.DetailBlocks,
		},
		{URL: "/wheel?side=left", Summary: "It turns.", Published: day(6), Modified: day(6), Known: millrace.AllFields},
		{URL: "/tag/water/", Title: "About water", Kind: millrace.Archive, Known: millrace.AllFields},
		{URL: "https://elsewhere.example/p", Title: "Elsewhere", Known: millrace.AllFields},
	}
}

func view(pages []*millrace.Page) *protocoltest.View {
	return protocoltest.NewView(millrace.Site{Base: base, Title: "The mill", Seq: 5}, pages, Protocol().Tagger)
}

// get returns the document at target.
func get(t *testing.T, p millrace.Publisher, v millrace.View, target string) (*millrace.Document, error) {
	t.Helper()
	return p.Find(t.Context(), v, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
}

func body(t *testing.T, d *millrace.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func indent(t *testing.T, doc string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(doc), "", "  "); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return b.String() + "\n"
}

// TestDocuments compares documents with golden files in txtar archives. The names of the files
// are requests.
func TestDocuments(t *testing.T) {
	for file, o := range map[string]*protocol.PublisherOptions{
		"served": {Contact: "mailto:miller@mill.example", Auth: true, Own: []any{&PublisherOptions{Embeddings: true}}},
		"static": {Static: true, ListItems: 2},
	} {
		t.Run(file, func(t *testing.T) {
			name := "testdata/" + file + ".txtar"
			golden, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			pub, v := NewPublisher(o), view(mill())
			large := map[string]*millrace.Document{}
			for d, err := range pub.All(t.Context(), v) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Large {
					large[d.Path] = d
				}
			}
			for i, f := range golden.Files {
				d := large[f.Name]
				if d == nil {
					if d, err = get(t, pub, v, f.Name); err != nil {
						t.Fatalf("%s: %v", f.Name, err)
					}
				}
				var got strings.Builder
				fmt.Fprintf(&got, "path %s\npublic %v\n", d.Path, d.Public)
				for _, field := range []string{"Content-Type", "Last-Modified", "Link", versionHead} {
					if value := d.Header.Get(field); value != "" {
						fmt.Fprintf(&got, "%s: %s\n", field, value)
					}
				}
				got.WriteString("\n" + indent(t, body(t, d)))
				if *update {
					golden.Files[i].Data = []byte(got.String())
				} else if diff := cmp.Diff(string(f.Data), got.String()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(name, txtar.Format(golden), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Equivalent queries return the same document.
func TestOneForm(t *testing.T) {
	pub, v := NewPublisher(nil), view(mill())
	for want, targets := range map[string][]string{
		"/openfeeder": {
			"/openfeeder?", "/openfeeder?page=1", "/openfeeder?limit=10&page=0", "/openfeeder?url=", "/openfeeder?page=-7",
			"/openfeeder?limit=abc&page=NaN", "/openfeeder?q=%20%20", "/openfeeder?min_score=9", "/openfeeder?x[]=1", "/openfeeder?page=1&page=2",
			"/openfeeder?limit=10.5", "/openfeeder?page=%2B1",
		},
		"/openfeeder?limit=50&page=2": {"/openfeeder?page=2&limit=999999999999999999999", "/openfeeder?limit=51&page=2"},
		"/openfeeder?limit=1":         {"/openfeeder?limit=0", "/openfeeder?limit=-5"},
		"/openfeeder?page=1073741824": {"/openfeeder?page=99999999999999999999"},
		"/openfeeder?url=%2Fgate%2F": {
			"/openfeeder?url=/gate/", "/openfeeder?url=/gate", "/openfeeder?url=gate/", "/openfeeder?url=https://mill.example/gate/",
			"/openfeeder?url=HTTPS://MILL.EXAMPLE:443/gate/%23top", "/openfeeder?url=http://mill.example/gate", "/openfeeder?url=/%2567ate/",
		},
		"/openfeeder?url=%2Fwheel%3Fside%3Dleft": {"/openfeeder?url=/wheel%3Fside=left"},
		"/openfeeder?q=water&limit=2":            {"/openfeeder?limit=2&q=+water&since=nonsense", "/openfeeder?q=water&min_score=0&limit=2&q=x"},
		"/openfeeder?q=water&url=%2Fgate%2F":     {"/openfeeder?url=/gate&q=water"},
		"/openfeeder?until=2026-01-06T12%3A00%3A00Z": {
			"/openfeeder?until=2026-01-06T12:00:00Z&url=/x&limit=3", "/openfeeder?until=2026-01-06T13:00:00%2B01:00",
			"/openfeeder?until=2026-01-06T13:00:00+01:00", "/openfeeder?since=&until=2026-01-06T12:00:00.000Z",
		},
	} {
		one, err := get(t, pub, v, want)
		if err != nil || one.Path != want {
			t.Fatalf("%s: %v, %v", want, one, err)
		}
		for _, target := range targets {
			d, err := get(t, pub, v, strings.ReplaceAll(target, "HTTPS://MILL", "https%3A//MILL"))
			if err != nil {
				t.Errorf("%s: %v", target, err)
				continue
			}
			if d.Path != want || d.ETag != one.ETag || body(t, d) != body(t, one) {
				t.Errorf("%s is %s with %s, want %s with %s", target, d.Path, d.ETag, want, one.ETag)
			}
		}
	}
}

// Each invalid parameter returns an error of the protocol that describes the fault.
func TestWrong(t *testing.T) {
	pub, v := NewPublisher(nil), view(mill())
	for _, c := range []struct {
		target string
		status int
		code   string
	}{
		{"?url=/none", 404, notFound},
		{"?url=/tag/water/", 404, notFound},
		{"?q=x&url=/none", 404, notFound},
		{"?url=https://elsewhere.example/p", 400, invalidURL},
		{"?url=https://mill.example.evil/", 400, invalidURL},
		{"?url=https://user@mill.example/", 400, invalidURL},
		{"?url=//elsewhere.example/p", 400, invalidURL},
		{"?url=javascript:alert(1)", 400, invalidURL},
		{"?url=/../etc/passwd", 400, invalidURL},
		{"?url=/gate/%252e%252e/", 400, invalidURL},
		{"?url=/gate/%25252e%25252e/", 400, invalidURL},
		{"?url=/gate/%255c", 404, notFound},
		{"?url=/gate/%5c", 400, invalidURL},
		{"?url=/gate%00", 400, invalidURL},
		{"?url=/gate%0d%0aX:%20y", 400, invalidURL},
		{"?url=/gate%C2%85", 400, invalidURL},
		{"?url=/gate%CC%81", 404, notFound},
		{"?url=/" + strings.Repeat("a", 9000), 400, invalidURL},
		{"?url=%ff", 400, invalidParam},
		{"?url=%zz", 400, invalidParam},
		{"?q=" + strings.Repeat("a", 70_000), 400, invalidParam},
		{"?q=x&min_score=NaN", 400, invalidParam},
		{"?q=x&min_score=1.01", 400, invalidParam},
		{"?q=x&min_score=-0.1", 400, invalidParam},
		{"?q=x&min_score=0x1p-2", 400, invalidParam},
		{"?q=x&min_score=Inf", 400, invalidParam},
		{"?q=x&min_score=much", 400, invalidParam},
		{"?since=yesterday", 400, invalidParam},
		{"?since=2026-02-30T00:00:00Z", 400, invalidParam},
		{"?since=2026-02-20", 400, invalidParam},
		{"?since=2026-02-20T24:00:00Z", 400, invalidParam},
		{"?since=2026-02-20T1:00:00Z", 400, invalidParam},
		{"?since=2026-02-20T01:00:00,5Z", 400, invalidParam},
		{"?since=eyJ0IjoxfQ==", 400, invalidParam},
		{"?since=bm90aGluZw==", 400, invalidParam},
		{"?since=" + strings.Repeat("e", 5000), 400, invalidParam},
		{"?until=eyJ0IjoiMjAyNi0wMi0yM1QwMDowMDowMFoifQ==", 400, invalidParam},
		{"?until=2026", 400, invalidParam},
		{"?since=2026-02-20T00:00:00Z&until=2026-02-19T00:00:00Z", 400, invalidParam},
		{"?since=2026-02-20T00:00:00Z&cursor=x", 400, invalidParam},
		{"?until=2026-02-20T00:00:00Z&cursor=e30", 400, invalidParam},
		{"?until=2026-02-20T00:00:00Z&cursor=" + resumePoint{Epoch: "other", Edition: 3}.String(), 410, resyncRequired},
		{"?until=2026-02-20T00:00:00Z&cursor=" + resumePoint{Epoch: "epoch", Edition: 99}.String(), 410, resyncRequired},
		{"/", 404, ""},
		{"/other", 404, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+c.target, nil)
		_, err := pub.Find(t.Context(), v, r)
		e, ok := errors.AsType[*millrace.RequestError](err)
		if millrace.Status(err) != c.status || ok && e.Code != c.code || ok != (c.code != "") {
			t.Errorf("%s: %v", kit.Short(c.target), err)
			continue
		}
		_, body, mine := pub.(millrace.ErrorRenderer).RenderError(r, c.status, err)
		f, ok := decodeFailure(body)
		if !mine || !ok || f.Message == "" || c.code != "" && f.Code != c.code || len(body) > 600 {
			t.Errorf("%s: refused with %s", kit.Short(c.target), body)
		}
	}
}

// RenderError returns a body for every path and status, without internal details.
func TestRefuse(t *testing.T) {
	pub := NewPublisher(nil).(millrace.ErrorRenderer)
	for status, code := range map[int]string{
		400: invalidParam, 401: authRequired, 403: authRequired, 404: notFound, 405: invalidParam, 410: resyncRequired,
		413: invalidParam, 429: rateLimited, 500: serverError, 503: serverError,
	} {
		for _, path := range []string{discovery, endpoint, eventsPath, updatePath, endpoint + "/x"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, path+"?q=%22", nil)
			h, body, ok := pub.RenderError(r, status, errors.New("secret"))
			f, form := decodeFailure(body)
			if !ok || !form || f.Code != code || strings.Contains(string(body), "secret") || !strings.Contains(string(body), `"schema":"`+schema+`"`) {
				t.Errorf("%s %d: %s", path, status, body)
			}
			if h.Get("X-OpenFeeder") != version || h.Get("Content-Type") != contentType || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %d: %v", path, status, h)
			}
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, endpoint, nil)
	if _, text, _ := pub.RenderError(r, 405, &millrace.RequestError{Status: 405, Text: "read it"}); string(text) != `{"schema":"openfeeder/1.0","error":{"code":"INVALID_PARAM","message":"read it"}}` {
		t.Errorf("an error without a code: %s", text)
	}
	for _, path := range []string{"/", "/openfeeders", "/post", "/openfeeder.json"} {
		if _, _, ok := pub.RenderError(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), 404, nil); ok {
			t.Errorf("%s is refused", path)
		}
	}
	static := NewPublisher(&protocol.PublisherOptions{Static: true}).(millrace.ErrorRenderer)
	for _, path := range []string{"/openfeeder.json", "/openfeeder-7.json", "/openfeeder/pages/x.json"} {
		if _, _, ok := static.RenderError(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), 404, nil); !ok {
			t.Errorf("%s was not refused", path)
		}
	}
}

// The chunks of a page are complete for any limit, and an edit elsewhere does not change their
// IDs.
func TestChunkPages(t *testing.T) {
	long := &millrace.Page{URL: "/gate/", Title: "The gate", Known: millrace.AllFields}
	for i := range 6 {
		long.Blocks = append(long.Blocks, millrace.TextBlocks(strings.Repeat(fmt.Sprintf("Gate %d. ", i), 200))...)
	}
	v := view([]*millrace.Page{long})
	pub := NewPublisher(nil)
	var full *page
	for _, limit := range []int{50, 1, 2, 3} {
		var got []piece
		for n := 1; ; n++ {
			d, err := get(t, pub, v, fmt.Sprintf("/openfeeder?url=/gate/&limit=%d&page=%d", limit, n))
			if err != nil {
				t.Fatal(err)
			}
			w, err := decodePage([]byte(body(t, d)))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, w.Chunks...)
			if w.Meta.ReturnedChunks != len(w.Chunks) || w.Meta.Page != n || w.Meta.TotalPages != pagesOf(w.Meta.TotalChunks, limit) {
				t.Errorf("limit %d page %d: %+v", limit, n, w.Meta)
			}
			if n > w.Meta.TotalPages {
				break
			}
			full = w
		}
		if len(got) != full.Meta.TotalChunks || len(got) != 6 {
			t.Errorf("limit %d: %d chunks of %d", limit, len(got), full.Meta.TotalChunks)
		}
		ids := map[string]bool{}
		for _, c := range got {
			ids[c.ID] = true
		}
		if len(ids) != len(got) {
			t.Errorf("limit %d: %d different IDs for %d chunks", limit, len(ids), len(got))
		}
	}
	d, err := get(t, pub, v, "/openfeeder?url=/gate/&page=1073741824&limit=50")
	if err != nil {
		t.Fatal(err)
	}
	if w, err := decodePage([]byte(body(t, d))); err != nil || len(w.Chunks) > 0 {
		t.Errorf("far after the end: %+v, %v", w, err)
	}
}

// An ETag changes when its document changes, and only then.
func TestTags(t *testing.T) {
	pub, v := NewPublisher(nil), view(mill())
	tagOf := func(v millrace.View, target string) string {
		t.Helper()
		d, err := get(t, pub, v, target)
		if err != nil {
			t.Fatal(err)
		}
		return d.ETag
	}
	edited := mill()
	edited[1].Title = "The sluice"
	next := protocoltest.NewView(millrace.Site{Base: base, Title: "The mill", Seq: 6}, edited, Protocol().Tagger)
	other := protocoltest.NewView(millrace.Site{Base: base, Title: "The mill", Seq: 5, Epoch: "other"}, mill(), Protocol().Tagger)
	for target, moves := range map[string][2]bool{ // ETag changes after an edit, in another store
		"/openfeeder":                            {true, true},
		"/openfeeder?page=2":                     {true, true},
		"/openfeeder?url=/gate/":                 {true, false},
		"/openfeeder?url=/":                      {false, false},
		"/openfeeder?q=gate":                     {true, false},
		"/openfeeder?q=welcome":                  {false, false},
		"/openfeeder?until=2026-01-06T00:00:00Z": {true, true},
		discovery:                                {false, false},
	} {
		if got := [2]bool{tagOf(v, target) != tagOf(next, target), tagOf(v, target) != tagOf(other, target)}; got != moves {
			t.Errorf("%s: changes of the tag: %v, want %v", target, got, moves)
		}
	}
	seen := map[string]string{}
	for _, target := range []string{
		"", "?page=2", "?limit=2", "?url=/gate/", "?url=/gate/&page=2", "?url=/gate/&limit=2", "?url=/", "?q=water", "?q=water&page=2",
		"?q=water&limit=1", "?until=2026-01-06T00:00:00Z", "?until=2026-01-07T00:00:00Z", "?since=2026-01-06T00:00:00Z",
	} {
		tag := tagOf(v, endpoint+target)
		if seen[tag] != "" {
			t.Errorf("%q and %q have the same tag", target, seen[tag])
		}
		seen[tag] = target + "."
	}
}

func TestSearch(t *testing.T) {
	pub, v := NewPublisher(nil), view(mill())
	ask := func(target string) *index {
		t.Helper()
		d, err := get(t, pub, v, target)
		if err != nil {
			t.Fatal(err)
		}
		x, err := decodeIndex([]byte(body(t, d)))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := ask("/openfeeder?q=patient+paddle+overshot")
	if len(x.Items) != 1 || x.Items[0].URL != "/gate/" || x.Items[0].Relevance == nil || *x.Items[0].Relevance != .6667 {
		t.Errorf("items %+v", x.Items)
	}
	if len(x.Chunks) == 0 || x.Chunks[0].URL != base+"gate/" || x.Chunks[0].Relevance == nil {
		t.Errorf("chunks %+v", x.Chunks)
	}
	w, err := get(t, pub, v, "/openfeeder?url=/gate/&limit=50")
	if err != nil {
		t.Fatal(err)
	}
	full, err := decodePage([]byte(body(t, w)))
	if err != nil || !slices.ContainsFunc(full.Chunks, func(c piece) bool { return c.ID == x.Chunks[0].ID }) {
		t.Errorf("the chunk does not belong to its page: %v", err)
	}
	for _, target := range []string{"/openfeeder?q=overshot", "/openfeeder?q=paddle+overshot&min_score=0.5001", "/openfeeder?q=paddle&page=9", "/openfeeder?q=paddle&url=/"} {
		d, err := get(t, pub, v, target)
		if err != nil {
			t.Fatal(err)
		}
		if b := body(t, d); !strings.Contains(b, `"items":[],"chunks":[]`) {
			t.Errorf("%s: %s", target, b)
		}
	}
	if x := ask("/openfeeder?q=paddle+overshot&min_score=0.5"); len(x.Chunks) == 0 {
		t.Error("min_score is not inclusive")
	}
	if _, err := get(t, pub, struct{ millrace.View }{v}, "/openfeeder?q=x"); millrace.Status(err) != http.StatusServiceUnavailable {
		t.Errorf("without an index: %v", err)
	}
	d, err := get(t, pub, struct{ millrace.View }{v}, discovery)
	if err != nil || strings.Contains(body(t, d), `"search"`) {
		t.Errorf("the discovery document announces a search index that does not exist: %v", err)
	}
}

// Pages with the same text have chunks with the same ID. In a response, the IDs are still
// unique.
func TestSearchSameChunks(t *testing.T) {
	var pages []*millrace.Page
	for _, u := range []string{"/abort/", "/rollback/", "/undo/"} {
		pages = append(pages, &millrace.Page{
			URL: u, Title: u, Modified: day(1), Blocks: millrace.TextBlocks("To give up all changes:"), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
		})
	}
	d, err := get(t, NewPublisher(nil), view(pages), "/openfeeder?q=changes")
	if err != nil {
		t.Fatal(err)
	}
	x, err := decodeIndex([]byte(body(t, d)))
	if err != nil || len(x.Chunks) != 3 {
		t.Fatalf("%+v %v", x, err)
	}
	id := x.Chunks[0].ID
	if x.Chunks[1].ID != id+"-2" || x.Chunks[2].ID != id+"-3" {
		t.Errorf("%q %q %q", id, x.Chunks[1].ID, x.Chunks[2].ID)
	}
}

func TestAnnounce(t *testing.T) {
	v := protocoltest.NewView(millrace.Site{Base: base, EndpointBase: "https://docs.example/m/"}, nil)
	n := NewPublisher(nil).Advertise(v)
	if len(n.Root) != 1 || n.Root[0].URL != "/m/.well-known/openfeeder.json" || n.Root[0].Rel != relation || len(n.Robots) != 1 {
		t.Errorf("%+v", n)
	}
}

// Only searches are costly requests, so lookups do not wait for them.
func TestCostly(t *testing.T) {
	pub := NewPublisher(nil).(*publisher)
	for target, want := range map[string]bool{
		"/openfeeder?q=wheel": true, "/openfeeder?url=/a&%71=wheel": true, "/openfeeder?page=2": false,
		"/openfeeder?url=/q": false, "/openfeeder?since=q=": false, "/openfeeder": false, "/other?q=wheel": false,
	} {
		if got := pub.Costly(httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
}
