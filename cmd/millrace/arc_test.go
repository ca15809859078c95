package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/snapshot"
)

// annotatedPage has ARC attributes, an excluded part and an input.
const annotatedPage = `<!DOCTYPE html>
<html lang="en"><head><title>Visit</title></head>
<body data-ai-page="visit">
<main><h1 data-ai-heading="title">Visit the mill</h1>
<p>The mill is open on the first Sunday of every month, from ten until the water is low. Children may turn the small wheel.</p>
<section data-ai-section="tickets" data-ai-intent="buy_ticket">
<h2 data-ai-heading="title">Tickets</h2>
<label for="day">Day</label> <input id="day" data-ai-field="day" value="untold">
<p data-ai-content="staff" data-ai-visibility="hidden">untold</p>
<a data-ai-link="prices" href="prices.html">Prices</a>
</section></main></body></html>
`

// annotatedSnapshot returns the expected snapshot of annotatedPage at an address.
func annotatedSnapshot(at string) string {
	return `{"page":"visit","relations":[{"from":"tickets","kind":"link","to":"prices"}],` +
		`"sections":[{"fields":[{"field":"day","label":"Day","type":"text"}],"intent":"buy_ticket",` +
		`"links":[{"href":"` + at + `prices.html","link":"prices","title":"Prices"}],"name":"tickets","staff":"","title":"Tickets"}],"title":"Visit the mill"}`
}

// plainPage has a form and no ARC attributes.
const plainPage = `<!DOCTYPE html>
<html lang="en"><head><title>Write</title></head><body>
<main><h1>Write to the miller</h1>
<p>The miller reads letters on Tuesdays, and answers most of them before the end of the week.</p>
<form><label>Letter <textarea name="letter">untold</textarea></label><button>Send</button></form></main></body></html>
`

func TestARCSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	visit, plain := filepath.Join(dir, "visit.html"), filepath.Join(dir, "write.html")
	write(t, visit, annotatedPage)
	write(t, plain, plainPage)
	url, _ := liveSite(t, dir, 0)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{visit, "--url", "https://mill.example/visit/"}, annotatedSnapshot("https://mill.example/visit/")},
		{[]string{visit}, strings.Replace(annotatedSnapshot(""), `"href":"prices.html",`, "", 1)},
		{[]string{url + "visit.html", "--allow-private", "--json"}, annotatedSnapshot(url)},
		{[]string{plain}, `{"fields":[{"field":"letter","label":"Letter","type":"textarea"}],"page":"write",` +
			`"summary":"The miller reads letters on Tuesdays, and answers most of them before the end of the week.","title":"Write"}`},
	} {
		code, out, errs := command(t, nil, append([]string{"arc", "snapshot"}, c.args...)...)
		if diff := cmp.Diff(c.want+"\n", out); code != 0 || diff != "" {
			t.Errorf("%q: exit %d\n%s%s", c.args, code, diff, errs)
		}
	}
	if code, out, _ := command(t, nil, "arc", "snapshot", filepath.Join("..", "..", "testdata", "sites", "handbook", "about", "index.html")); code != 0 ||
		!strings.Contains(out, `{"page":"about","sections":[{"name":"using-the-text",`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestARCLint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad, shape := filepath.Join(dir, "good.html"), filepath.Join(dir, "bad.html"), filepath.Join(dir, "shape.json")
	write(t, good, annotatedPage)
	write(t, bad, "<p>\n<p data-ai-summar=x>S</p><input name=a></p>")
	write(t, shape, `{"title":"T"}`)
	if code, out, errs := command(t, nil, "arc", "lint", good); code != 0 || out != good+": no findings\n" || errs != "" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, _ := command(t, nil, "arc", "lint", bad, good, shape, dir, "--json")
	var got []snapshot.LintReport
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	_, text, _ := command(t, nil, "arc", "lint", bad, good, shape, dir)
	for i := range got {
		for j, f := range got[i].Findings {
			if !strings.Contains(text, f.Message) {
				t.Errorf("missing in the text: %s", f.Message)
			}
			got[i].Findings[j].Message = ""
		}
		got[i].Error = ""
	}
	want := []snapshot.LintReport{
		{Page: bad, Findings: []snapshot.Finding{
			{Rule: "attribute-name", Path: "html > body > p:nth-of-type(2)", Line: 2, Column: 1},
			{Rule: "input-field", Path: "html > body > input", Line: 2, Column: 26},
		}},
		{Page: good, Findings: []snapshot.Finding{}},
		{Page: shape, Findings: []snapshot.Finding{{Rule: "shape"}}},
		{Page: dir, Findings: []snapshot.Finding{}, Code: "is-folder"},
	}
	if diff := cmp.Diff(want, got); code != 1 || diff != "" {
		t.Errorf("exit %d (-want +got):\n%s", code, diff)
	}
	code, out, _ = command(t, nil, "arc", "lint", good, good, "--json")
	var list []snapshot.LintReport
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || len(list) != 2 || list[0].Findings == nil {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

func TestARCAnnotate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "write.html")
	write(t, page, plainPage)
	code, out, errs := command(t, nil, "arc", "annotate", page)
	if code != 0 || errs != "" || !strings.Contains(out, `<textarea data-ai-field="letter" name="letter">`) || !strings.Contains(out, `<body data-ai-page="write">`) {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	code, report, _ := command(t, nil, "arc", "annotate", page, "--out", page, "--json")
	var r arcAdditions
	if err := json.Unmarshal([]byte(report), &r); err != nil || code != 0 || len(r.Added) < 5 || r.Added[0].Attribute != "data-ai-page" || r.Added[0].Line != 2 {
		t.Errorf("exit %d, %v: %s", code, err, report)
	}
	written, err := os.ReadFile(page)
	if err != nil || string(written) != out {
		t.Errorf("%v (-printed +written):\n%s", err, cmp.Diff(out, string(written)))
	}
	if code, again, _ := command(t, nil, "arc", "annotate", page); code != 0 || again != out {
		t.Errorf("exit %d, a second time:\n%s", code, cmp.Diff(out, again))
	}
	if code, out, _ := command(t, nil, "arc", "lint", page); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if exit, code, out := failure(t, nil, "arc", "annotate", page, "--out", dir); exit != 1 || code != "is-folder" || !strings.Contains(out, dir) {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v: %v remains", err, left)
	}
}

// The arc commands fail on input that is not a page. Each error names the input, and
// standard output stays empty.
func TestARCBad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large, binary, wide, many := filepath.Join(dir, "large"), filepath.Join(dir, "x.bin"), filepath.Join(dir, "wide.html"), filepath.Join(dir, "many.html")
	write(t, large, "")
	if err := os.Truncate(large, ingest.MaxPage+1); err != nil {
		t.Fatal(err)
	}
	write(t, binary, "\x7fELF\x00\x01\x02")
	write(t, wide, "\xFF\xFE<\x00p\x00>\x00")
	write(t, many, "<p>Text.</p>"+strings.Repeat(`<p data-ai-ref="/">`, 20_000))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusGone) }))
	defer server.Close()
	for _, c := range []struct {
		page, code string
		of         []string // commands; nil = all three
	}{
		{filepath.Join(dir, "none.html"), "file-not-found", nil},
		{dir, "is-folder", nil},
		{large, "too-large", nil},
		{binary, "binary", nil},
		{wide, "invalid", []string{"lint", "annotate"}},
		{many, "too-large", []string{"snapshot"}},
		{server.URL, "http-410", nil},
		{"ftp://mill.example/", "bad-scheme", nil},
	} {
		for _, name := range c.of {
			if !slices.Contains([]string{"snapshot", "lint", "annotate"}, name) {
				t.Fatal(name)
			}
		}
		for _, name := range []string{"snapshot", "lint", "annotate"} {
			if c.of != nil && !slices.Contains(c.of, name) || testing.Short() && c.page == large && name != "lint" {
				continue
			}
			exit, code, out := failure(t, nil, "arc", name, c.page, "--allow-private")
			if exit == 0 || code != c.code || !strings.Contains(out, c.page) || strings.Contains(out, "page.invalid") {
				t.Errorf("%s %s: exit %d %s, want %s\n%s", name, c.page, exit, code, c.code, out)
			}
		}
	}
	if exit, code, out := failure(t, nil, "arc", "lint", binary, large, "--url", "https://mill.example/"); exit != 2 || code != "usage/url" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}

// Every source that reads a page also reads its snapshot.
func TestARCIngested(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	write(t, filepath.Join(dir, "visit.html"), annotatedPage)
	write(t, filepath.Join(dir, "write.html"), plainPage)
	index := filepath.Join(dir, "index.html")
	home, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	write(t, index, strings.Replace(string(home), "</body>", `<a href="visit.html">Visit</a> <a href="write.html">Write</a></body>`, 1))
	url, _ := liveSite(t, dir, 0)
	crawled := filepath.Join(t.TempDir(), "crawled.db")
	crawlInto(t, url, crawled)
	for way, pages := range map[string]map[string]*millrace.Page{
		"folder": storedPages(t, ingested(t, dir, url), "folder "+dir, url),
		"crawl":  storedPages(t, crawled, url, url),
	} {
		visit, plain := pages[url+"visit.html"], pages[url+"write.html"]
		if visit == nil || plain == nil {
			t.Fatalf("%s: %q", way, slices.Sorted(maps.Keys(pages)))
		}
		if diff := cmp.Diff(annotatedSnapshot(url), string(visit.Extra["arc"])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", way, diff)
		}
		if diff := cmp.Diff(`{"fields":[{"field":"letter","label":"Letter","type":"textarea"}]}`, string(plain.Extra["arc"])); diff != "" {
			t.Errorf("%s, the form (-want +got):\n%s", way, diff)
		}
		for u, p := range pages {
			if !p.Known.Has(millrace.FieldExtra) || bytes.Contains(p.Canonical(), []byte("untold")) {
				t.Errorf("%s: %s: %s", way, u, p.Canonical())
			}
		}
	}
	code, out, _ := command(t, nil, "extract", filepath.Join(dir, "visit.html"), "--json", "--url", url+"visit.html")
	var r struct{ Extra map[string]json.RawMessage }
	var indented bytes.Buffer
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || json.Compact(&indented, r.Extra["arc"]) != nil || indented.String() != annotatedSnapshot(url) {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}
