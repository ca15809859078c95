package extract

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/testkit"
)

// ordinary returns a page with a usual mix of elements, about n bytes long.
func ordinary(n int) string {
	var b strings.Builder
	b.WriteString("<title>Ordinary</title><body><nav><a href=/>Home</a></nav><article><h1>Ordinary</h1>")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "<h2 id=s%d>Part %d</h2><p>The quick brown fox <a href=/fox/%d>jumps</a> over the <em>lazy</em> dog, again and again.</p><ul><li>one</li><li>two <code>x</code></li></ul>\n", i, i, i)
	}
	return b.String()
}

var hostile = map[string]func() string{
	"20,000 paragraphs": func() string { return "<body>" + strings.Repeat("<p>Some words of a paragraph, not many.", 20_000) },
	"deep div":          func() string { return strings.Repeat("<div>a ", 20_000) },
	"deep lists":        func() string { return strings.Repeat("<ul><li>a ", 20_000) },
	"deep quotes":       func() string { return strings.Repeat("<blockquote>a ", 20_000) },
	"deep tables":       func() string { return strings.Repeat("<table><tr><td>a ", 10_000) },
	"deep inline":       func() string { return strings.Repeat("<span><em><i>a ", 20_000) },
	"deep links":        func() string { return strings.Repeat("<a href=x><div>a ", 20_000) },
	"deep pre":          func() string { return strings.Repeat("<pre><code>a ", 20_000) },
	"open formatting": func() string {
		var b strings.Builder
		for i := range 400 {
			fmt.Fprintf(&b, "<b id=%d>", i)
		}
		return b.String() + strings.Repeat("<p>x", 50_000)
	},
	"100,000 links":      func() string { return "<body>" + strings.Repeat(`<a href="/some/page">link text</a> `, 100_000) },
	"100,000 fragments":  func() string { return "<body>" + strings.Repeat(`<a href="#n1">1</a> `, 100_000) + "<p id=n1>note" },
	"5 MB text node":     func() string { return "<body><p>" + strings.Repeat("word and ", 5<<20/9) },
	"5 MB without space": func() string { return "<body><p>" + strings.Repeat("x", 5<<20) },
	"5 MB of white space": func() string {
		return "<body><p>a" + strings.Repeat(" \n", 5<<19) + "b"
	},
	"50,000 cells": func() string { return "<table>" + strings.Repeat("<tr><td>a<td>b<td>c", 50_000/3) + "</table>" },
	"wide cells": func() string {
		return "<table><tr>" + strings.Repeat("<td colspan=999999 rowspan=99999>a", 20_000) + "<tr><td>b</table>"
	},
	"50,000 headings":      func() string { return "<body>" + strings.Repeat("<h1>Title of it</h1>", 50_000) },
	"50,000 dt":            func() string { return "<dl>" + strings.Repeat("<dt>a<dd>b", 50_000) },
	"50,000 br":            func() string { return "<body><p>a" + strings.Repeat("<br>", 50_000) + "b" },
	"200,000 comments":     func() string { return "<body>" + strings.Repeat("<!-- c -->", 200_000) },
	"formulas without one": func() string { return "<p><span>" + strings.Repeat("<span class=katex-html>x</span>", 50_000) },
	"50,000 figures": func() string {
		return strings.Repeat("<figure><img src=a.png><figcaption>x</figcaption></figure>", 50_000)
	},
	"50,000 quotes": func() string { return strings.Repeat("<blockquote>a<cite>b</cite></blockquote>", 50_000) },
	"50,000 pre":    func() string { return strings.Repeat("<pre>a</pre>", 50_000) },
	"50,000 tables": func() string { return strings.Repeat("<table><tr><th>a<td>b</table>", 50_000) },
	"nested, then wide": func() string {
		return strings.Repeat("<table><tr><td>", 100) + strings.Repeat("<tr><td>a<td>b", 20_000)
	},
	"comments, then elements": func() string {
		return "<body><div>" + strings.Repeat("<!-- c -->", 50_000) + strings.Repeat("<i>a</i>", 50_000) + "</div>"
	},
	"many classes": func() string {
		return "<body>" + strings.Repeat("<p class='"+strings.Repeat("nav x ", 2_000)+"'>a", 50)
	},
	"many names in head": func() string {
		return "<script type=application/ld+json>[" + strings.Repeat(`{"@type":"Article","headline":"x y z"},`, 300) + "{}]</script>" + strings.Repeat("<h1>a b c d e f</h1>", 20_000)
	},
	"long attribute": func() string { return `<div class="` + strings.Repeat("share nav ", 500_000) + `">text</div>` },
	"long srcset":    func() string { return `<p>text<img srcset="` + strings.Repeat("/a.png 1x, ", 300_000) + `">` },
	"spans in pre":   func() string { return "<pre>" + strings.Repeat("<span class=line>x</span>", 100_000) + "</pre>" },
	"deep JSON-LD": func() string {
		return `<script type="application/ld+json">` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + `</script><p>text`
	},
	"wide JSON-LD": func() string {
		return `<script type="application/ld+json">[` + strings.Repeat(`{"@type":"Article","keywords":"a,b"},`, 50_000) + `{}]</script><p>text`
	},
	"links": func() string {
		var b strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&b, "<a href=/%d>x</a>", i)
		}
		return b.String()
	},
	"passwords": func() string {
		return strings.Repeat("<div><form class='a b c'>", 150) + strings.Repeat("<input type=password><p>x</p>", 50_000)
	},
	"50,000 hidden panes": func() string {
		return "<main><p>a b</p><div><div class=a>x</div>" + strings.Repeat("<div class=a hidden>x</div>", 50_000)
	},
	"50,000 streamed parts": func() string {
		var b strings.Builder
		for i := range 50_000 {
			fmt.Fprintf(&b, `<template id="B:%x"></template><div hidden id="S:%x">x</div><script>$RC("B:%x","S:%x")</script>`, i, i, i, i)
		}
		return b.String()
	},
	"50,000 headings of asides": func() string {
		return "<main>" + filler + strings.Repeat("<h2>Related posts</h2><p><a href=x>a</a> <a href=y>b</a></p><h3>Read next</h3>", 50_000)
	},
	"writers in writers": func() string {
		return "<meta name=generator content=phpBB>" + strings.Repeat("<div class=postprofile>", 250) + strings.Repeat("<div class=postprofile><p>x</p></div>", 40_000)
	},
	"repeats in repeats": func() string {
		return "<main>" + strings.Repeat("<div>", 200) + strings.Repeat("<div>"+filler+"</div>", 4_000) + strings.Repeat("<div>one two three four five six seven eight nine ten eleven twelve</div>", 20_000)
	},
	"code beside much": func() string {
		return "<div>" + strings.Repeat("<!-- -->", 50_000) + "<div class=title>" + strings.Repeat("<b></b>", 50_000) + "</div>" + strings.Repeat("<div><pre>x</pre></div>", 1900) + "</div>"
	},
	"code by many elements": func() string {
		return "<div>" + strings.Repeat("<code class='hl block'>a\n</code>", 30_000) + "<p>x</div>"
	},
	"tabs without what they show": func() string {
		return "<pre>x</pre><div>" + strings.Repeat("<div role=tablist><b role=tab>x</b></div>", 30_000) + "</div>"
	},
	"formulas in one text": func() string {
		return `<script src="mathjax.js"></script><p>` + strings.Repeat(`\(a\) \( $$ `, 100_000)
	},
	"captions in captions": func() string {
		return strings.Repeat("<div>", 150) + strings.Repeat("<b></b>", 50_000) + strings.Repeat("</div><p class=caption>x</p>", 150)
	},
	"call-outs in call-outs": func() string {
		return strings.Repeat("<div class='admonition note'><table><tr><td>", 60) + strings.Repeat("<p>x", 30_000)
	},
	"headings that are links": func() string {
		return "<body class=archive>" + strings.Repeat("<div>", 250) + strings.Repeat("<h2><a href=x>a b</a></h2>", 40_000)
	},
}

// TestLinear checks that hostile documents take at most a few times as long per byte as an ordinary
// document. Quadratic work exceeds that by orders of magnitude at these sizes. Times are compared at
// full length only, because other tests share the machine.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("testing.Short: long documents")
	}
	const slow, short, most = 200 * time.Millisecond, 300_000, 12
	rules, err := NewRules(&RulesOptions{
		Keep:     []string{"td td:nth-child(2)", "ul ul ul > li", "div div div b", "i:only-child", "[class~=nav]", "p:last-of-type", ":is(cite, code):not(.x)", "span + span ~ span"},
		Drop:     []string{"li li:first-child", "blockquote:has(> blockquote) p", "div:has(b)", "a:nth-last-child(3n+1)", "dd ~ dd", "h1 + h1", "p ~ p ~ p ~ p:empty", "figure:has(img):nth-of-type(even)", "div div div div div div nosuch", "table"},
		Comments: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, o := range map[string]*Options{"alone": nil, "by rules": {Rules: rules}} {
		perByte := func(doc string, enough float64) (time.Duration, float64) {
			best := time.Hour
			for range testkit.Size(1, 1, 12) { // other load of the machine may slow some of the runs
				start := time.Now()
				if _, err := HTML(t.Context(), []byte(doc), "https://example.com/", o); err != nil {
					t.Fatal(err)
				}
				if best = min(best, time.Since(start)); best <= slow || float64(best) <= enough*float64(len(doc)) {
					break
				}
			}
			return best, float64(best) / float64(len(doc))
		}
		_, usual := perByte(ordinary(1<<20), 0)
		for name, make := range hostile {
			doc := make()
			if !testkit.Soaking() {
				doc = doc[:min(len(doc), short)]
			}
			took, per := perByte(doc, most*usual)
			t.Logf("%-8s %-22s %8d bytes %10s, %.2f of ordinary", kind, name, len(doc), took.Round(time.Millisecond), per/usual)
			if testkit.Soaking() && per > most*usual && took > slow {
				t.Errorf("%s, %s: %.1f times the time per byte of an ordinary page", kind, name, per/usual)
			}
		}
	}
}

func TestDepth(t *testing.T) {
	for _, tag := range []string{"div", "ul><li", "blockquote", "b", "span", "table><tr><td", "a href=x><p", "section", "custom-tag", "svg", "math", "font"} {
		for _, n := range []int{100, 511, 513, 3000} {
			doc := "<title>T</title><p>before</p>" + strings.Repeat("<"+tag+">", n) + "needle"
			res, err := HTML(t.Context(), []byte(doc), "https://example.com/", nil)
			if err != nil {
				t.Errorf("%d %s: %v", n, tag, err)
				continue
			}
			if tag != "svg" && tag != "math" && !strings.Contains(res.Page.Text(), "needle") {
				t.Errorf("%d %s: the text is lost: %q", n, tag, res.Page.Text())
			}
		}
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		o    *Options
		url  string
		want error
	}{
		"bytes":         {"<p>12345", &Options{MaxBytes: 4}, "https://example.com/", millrace.ErrTooLarge},
		"nodes":         {strings.Repeat("<p>a", 100), &Options{MaxNodes: 50}, "https://example.com/", millrace.ErrTooLarge},
		"pdf":           {"%PDF-1.7 ...", nil, "https://example.com/", millrace.ErrInvalid},
		"png":           {"\x89PNG\r\n\x1a\n\x00\x00", nil, "https://example.com/", millrace.ErrInvalid},
		"zeros":         {"abc\x00\x01\x02def ghi", nil, "https://example.com/", millrace.ErrInvalid},
		"image type":    {"<p>a", &Options{ContentType: "image/png"}, "https://example.com/", millrace.ErrInvalid},
		"JSON type":     {"{}", &Options{ContentType: "application/json; charset=utf-8"}, "https://example.com/", millrace.ErrInvalid},
		"no base":       {"<p>a", nil, "/a.html", millrace.ErrInvalid},
		"no host":       {"<p>a", nil, "//", millrace.ErrInvalid},
		"other scheme":  {"<p>a", nil, "ftp://example.com/", millrace.ErrInvalid},
		"URL with name": {"<p>a", nil, "https://user:pw@example.com/", millrace.ErrInvalid},
	} {
		if _, err := HTML(t.Context(), []byte(c.data), c.url, c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := HTML(ctx, []byte(ordinary(1<<20)), "https://example.com/", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// checkBlocks checks the contract of millrace.Block: spans start and end between characters,
// are ordered and nested, and URLs are absolute.
func checkBlocks(t *testing.T, blocks []millrace.Block) {
	t.Helper()
	text := func(s string, spans []millrace.Span) {
		var open []millrace.Span
		last := millrace.Span{Start: -1}
		for _, p := range spans {
			if p.Start < 0 || p.Start >= p.End || p.End > len(s) || p.Start < last.Start || p.Start == last.Start && p.End > last.End {
				t.Fatalf("bad span %+v of %q: %+v", p, s, spans)
			}
			if c := s[p.Start]; c >= 0x80 && c < 0xC0 || p.End < len(s) && s[p.End] >= 0x80 && s[p.End] < 0xC0 {
				t.Fatalf("span %+v of %q cuts a character", p, s)
			}
			for len(open) > 0 && open[len(open)-1].End <= p.Start {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && p.End > open[len(open)-1].End {
				t.Fatalf("spans of %q do not nest: %+v", s, spans)
			}
			open, last = append(open, p), p
			if p.Type == millrace.LinkSpan && !strings.Contains(p.URL, ":") {
				t.Fatalf("link to %q", p.URL)
			}
		}
		if !strings.EqualFold(s, strings.ToValidUTF8(s, "")) {
			t.Fatalf("%q is not UTF-8", s)
		}
	}
	for _, b := range blocks {
		text(b.Text, b.Spans)
		switch b.Type {
		case millrace.TextBlock, millrace.HeadingBlock, millrace.CodeBlock, millrace.LinkBlock, millrace.MathBlock:
			if strings.TrimSpace(b.Text) == "" {
				t.Fatalf("empty block %+v", b)
			}
		case millrace.ImageBlock, millrace.VideoBlock, millrace.AudioBlock, millrace.EmbedBlock:
			if !strings.HasPrefix(b.URL, "http") {
				t.Fatalf("%s at %q", b.Type, b.URL)
			}
		}
		for _, it := range b.Items {
			text(it.Text, it.Spans)
			checkBlocks(t, it.Blocks)
		}
		for _, r := range b.Rows {
			for _, c := range r {
				text(c.Text, c.Spans)
			}
		}
		checkBlocks(t, b.Blocks)
	}
}

// checkLinks checks the contract of Result: its URLs are absolute, canonical and distinct.
func checkLinks(t *testing.T, res *Result) {
	t.Helper()
	seen := map[string]bool{}
	for _, l := range res.Links {
		c, err := canon.URL(l.URL)
		if err != nil || c != l.URL || seen[c] || strings.Contains(c, "#") {
			t.Fatalf("link %+v: %q %v", l, c, err)
		}
		seen[c] = true
	}
	for _, u := range append(res.Feeds, res.Canonical, res.Refresh) {
		if c, err := canon.URL(u); u != "" && (err != nil || c != u) {
			t.Fatalf("%q: %q %v", u, c, err)
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, c := range blockCases {
		f.Add([]byte(c.html), "")
	}
	names, err := filepath.Glob(filepath.Join("testdata", "forms", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for i := 0; i < len(a.Files); i += 2 {
			f.Add(a.Files[i].Data, "")
		}
	}
	f.Add([]byte(ordinary(1000)), "text/html; charset=iso-8859-2")
	f.Add([]byte(`<base href=/c/><link rel=alternate type=application/rss+xml href=f><a href="//x:1/%7e?#a" rel=ugc>x</a><area href=b><input type=password><meta http-equiv=refresh content="0;url=d">`), "")
	f.Add([]byte(`<main><div>Versions: <a href=/c/a/b>1</a> <a href=/d/a/b>2</a> <a href=/a/a/b>3</a></div>`+filler+`<p><a class=btn href=c>Go</a><table><tr><td>`+filler+
		`<td><a href=1>a</a><a href=2>b</a><a href=3>c</a><a href=4>d</a><a href=5>e</a></table><h2>Feedback</h2><p>Edit this page`), "")
	f.Add([]byte("<?xml version=1.0?><!DOCTYPE html><frameset><frame src=x></frameset>"), "")
	f.Add([]byte("\xFE\xFF\x00<\x00p\x00>\x00a"), "")
	f.Fuzz(func(t *testing.T, data []byte, contentType string) {
		res, err := HTML(t.Context(), data, "https://example.com/a/b", &Options{ContentType: contentType, MaxBytes: 1 << 20})
		if err != nil {
			if !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		checkBlocks(t, res.Page.Blocks)
		if (len(res.Page.Blocks) == 0) != (res.Reason != nil) {
			t.Fatalf("%d blocks, reason %v", len(res.Page.Blocks), res.Reason)
		}
		_ = res.Page.Markdown()
		checkLinks(t, res)
		checkSelectors(t, res)
		blocks, err := Fragment(t.Context(), data, "https://example.com/a/b", nil)
		if err != nil {
			t.Fatal(err)
		}
		checkBlocks(t, blocks)
		again, err := HTML(t.Context(), data, "https://example.com/a/b", &Options{ContentType: contentType, MaxBytes: 1 << 20})
		if err != nil || string(again.Page.Canonical()) != string(res.Page.Canonical()) {
			t.Fatal("not deterministic")
		}
	})
}

// TestNesting checks the maximum nesting depth of blocks.
func TestNesting(t *testing.T) {
	var depth func([]millrace.Block) int
	depth = func(blocks []millrace.Block) int {
		most := 0
		for _, b := range blocks {
			most = max(most, depth(b.Blocks))
			for _, it := range b.Items {
				most = max(most, depth(it.Blocks))
			}
		}
		return most + 1
	}
	for _, open := range []string{"<ul><li>x", "<ol><li><p>x", "<blockquote><p>x", "<dl><dt>y<dd>x", "<div class='admonition note'><p>x", "<ul><li><blockquote>x"} {
		for _, n := range []int{10, 100, 2000} {
			blocks := fragmentOf(t, strings.Repeat(open, n))
			if got := depth(blocks); got > maxNesting+2 || got < 10 {
				t.Errorf("%q %d times: %d blocks deep", open, n, got)
			}
			if md := millrace.Markdown(blocks); strings.Count(md, "x") < n {
				t.Errorf("%q %d times: %d in the Markdown", open, n, strings.Count(md, "x"))
			}
			if strings.Contains(millrace.Text(blocks), "xx") {
				t.Errorf("%q %d times: words were joined", open, n)
			}
		}
	}
	res := extractPage(t, "https://example.com/a", "<frameset><frame src=b></frameset>")
	if !errors.Is(res.Reason, errFrames) || len(res.Links) != 1 {
		t.Errorf("%q %v", res.Reason, res.Links)
	}
}

// TestBroken cuts and mixes documents at random. The blocks must still be valid.
func TestBroken(t *testing.T) {
	var corpus string
	for _, c := range blockCases {
		corpus += c.html
	}
	if dir := os.Getenv("MILLRACE_TEST_PGDOC"); dir != "" {
		if data, err := os.ReadFile(filepath.Join(dir, "sql-select.html")); err == nil {
			corpus += string(data)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			i := r.IntN(len(corpus))
			b.WriteString(corpus[i:min(len(corpus), i+r.IntN(400))])
		}
		res, err := HTML(t.Context(), []byte(b.String()), "https://example.com/", nil)
		if err != nil {
			t.Fatalf("%q: %v", b.String(), err)
		}
		checkBlocks(t, res.Page.Blocks)
	}
}

// Formatting tags inside scripts do not count as open.
func TestScanTags(t *testing.T) {
	if _, _, n := scanTags([]byte("<script>" + strings.Repeat("i<b;i<s.length;", 100) + "</script>")); n > 0 {
		t.Errorf("%d formatting tags in a script without any", n)
	}
}

// A page that is nested too deeply in one place keeps its structure elsewhere.
func TestFlattenKeepsForm(t *testing.T) {
	deep := strings.Repeat("<div>", 600) + "deep" + strings.Repeat("</div>", 600)
	list := "<ul>" + strings.Repeat("<li>item", 700) + "</ul><table>" + strings.Repeat("<tr><td>a<td>b", 700) + "</table>" + strings.Repeat("<p>words <a name=x>here", 700)
	for _, doc := range []string{list + deep, deep + list} {
		res, err := HTML(t.Context(), []byte("<title>T</title>"+doc), "https://example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		items, rows, texts := 0, 0, 0
		for _, b := range res.Page.Blocks {
			items += len(b.Items)
			rows += len(b.Rows)
			if b.Text == "words here" {
				texts++
			}
		}
		if items != 700 || rows != 700 || texts != 700 || !strings.Contains(res.Page.Text(), "deep") {
			t.Errorf("%d items, %d rows, %d paragraphs", items, rows, texts)
		}
	}
	// Without scripts, the content of noscript is markup, and may be deeply nested.
	res, err := HTML(t.Context(), []byte("<p>before<noscript>"+strings.Repeat("<div>", 600)+"inside</noscript>"), "https://example.com/", nil)
	if err != nil || !strings.Contains(res.Page.Text(), "before") {
		t.Errorf("deep noscript: %v", err)
	}
}

func TestFlattenKeepsText(t *testing.T) {
	doc := "<head><title>T</title></head>" + strings.Repeat("<div><b>x ", 1000) + "end"
	for _, all := range []bool{false, true} {
		tree, err := html.Parse(strings.NewReader(string(flatten([]byte(doc), all))))
		if err != nil {
			t.Fatal(err)
		}
		marks, end := 0, false
		for n := range tree.Descendants() {
			if n.Type == html.TextNode {
				marks += strings.Count(n.Data, "x")
				end = end || strings.Contains(n.Data, "end")
			}
		}
		if marks != 1000 || !end {
			t.Errorf("all %t: %d marks, end %t", all, marks, end)
		}
	}
}
