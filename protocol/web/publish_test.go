package web

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
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

func textPage(url, text string) *millrace.Page {
	return &millrace.Page{
		URL: url, Title: "Title of " + url, Known: millrace.AllFields, Detail: millrace.DetailBlocks,
		Modified: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), Blocks: millrace.TextBlocks(text),
	}
}

func viewOf(pages ...*millrace.Page) *protocoltest.View {
	return protocoltest.NewView(millrace.Site{Base: testSite.Base}, pages, Protocol().Tagger)
}

func find(t *testing.T, p millrace.Publisher, v millrace.View, path, accept string) *millrace.Document {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com"+path, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	d, err := p.Find(t.Context(), v, r)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		t.Fatalf("%s: %v", path, err)
	}
	return d
}

func bodyOf(t *testing.T, d *millrace.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNames(t *testing.T) {
	for pagePath, want := range map[string]string{
		"/": "/index.md", "/post": "/post.md", "/docs/": "/docs/index.md", "/a.html": "/a.html.md", "/q/?x=1": "/q/index.md?x=1", "/q?x=a/b": "/q.md?x=a/b",
		"/x.md": "/x.md.md", "/post/~2/": "/post/~~2/index.md", "/post/~2/a": "/post/~~2/a.md", "/~bob/": "/~bob/index.md", "https://elsewhere.example/": "",
	} {
		if got := documentName(pagePath, 1); got != want {
			t.Errorf("%s: %s, want %s", pagePath, got, want)
		}
		if want == "" {
			continue
		}
		for n := 1; n < 4; n++ {
			back, m := wanting(testSite.Base, documentName(pagePath, n))
			if !slices.Contains(back, pagePath) || n != m {
				t.Errorf("%s: %q number %d, want number %d of %s", documentName(pagePath, n), back, m, n, pagePath)
			}
		}
	}
	for _, name := range []string{"/.md", "/a", "/a.md/", "/post/~1/a.md", "/post/~02/a.md", "/post/~2/~2/a.md", "a.md", "/.md?x"} {
		if got, _ := wanting(testSite.Base, name); len(got) > 0 {
			t.Errorf("%s is read as the name of %q", name, got)
		}
	}
}

// TestClashes checks that pages that map to the same name all get a name, and that a page of
// the site keeps its path.
func TestClashes(t *testing.T) {
	v := viewOf(textPage("/a/", "1"), textPage("/a/index", "2"), textPage("/b", "3"), textPage("/b.md", "4"), textPage("/a/index.md", "5"))
	p := NewPublisher(nil)
	got := map[string]string{}
	for d, err := range p.All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(d.Header.Get("Content-Type"), "text/markdown") {
			_, got[d.Path], _ = strings.Cut(bodyOf(t, d), "\n# Title of ")
			got[d.Path], _, _ = strings.Cut(got[d.Path], "\n")
		}
	}
	want := map[string]string{
		"/a/~2/index.md": "/a/", "/a/~3/index.md": "/a/index", "/~2/b.md": "/b", "/b.md.md": "/b.md", "/a/index.md.md": "/a/index.md",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("/a/~2/index.md?x=1")
	f.Add("/%C3%A9.md")
	f.Fuzz(func(t *testing.T, name string) {
		identities, n := wanting(testSite.Base, name)
		for _, pagePath := range identities {
			back, m := wanting(testSite.Base, documentName(pagePath, n))
			if m != n || !slices.Contains(back, pagePath) {
				t.Errorf("%q is number %d of %q, whose name is %q", name, n, pagePath, documentName(pagePath, n))
			}
			before, after := conflicts(pagePath)
			if slices.Contains(before, pagePath) || slices.Contains(after, pagePath) {
				t.Errorf("%q is its own rival", pagePath)
			}
			for _, other := range after {
				if b, _ := conflicts(other); !slices.Contains(b, pagePath) {
					t.Errorf("%q depends on %q, which waits for %q", pagePath, other, b)
				}
			}
		}
	})
}

func TestPrefers(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/markdown": true, "text/markdown, text/html, */*": true, "text/markdown;q=0.9, text/html;q=0.8": true, "TEXT/Markdown ; charset=utf-8; Q=0.5": true,
		"text/html, text/markdown;q=0.9": false, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false, "*/*": false, "text/*": false, "": false,
		"text/markdown;q=0": false, "text/markdown;q=0.5, */*;q=0.8": false, "text/markdown;q=0.5, */*;q=0.8, text/html;q=0.1": true, "text/markdown;q=x": false,
		"text/markdown;q=0.5, application/xhtml+xml": false, "text/plain": false, "text/markdown;q=2": false,
	} {
		if got := prefers([]string{accept}); got != want {
			t.Errorf("%q: %t", accept, got)
		}
	}
	if !prefers([]string{"text/html;q=0.5", "text/markdown"}) {
		t.Error("only one of two fields was read")
	}
}

func TestNegotiation(t *testing.T) {
	gone := textPage("/empty", "")
	archive := textPage("/tag/", "x")
	archive.Kind = millrace.Archive
	v := viewOf(textPage("/", "home"), textPage("/post/", "Text"), textPage("/post/?p=2", "Two"), gone, archive)
	p := NewPublisher(nil)
	const md = "text/markdown"
	d := find(t, p, v, "/post/", md)
	if d == nil || d.Variant == "" || d.Path != "/post/index.md" {
		t.Fatalf("%+v", d)
	}
	own := find(t, p, v, "/post/index.md", "")
	if own == nil || own.Variant != "" || own.ETag != d.ETag || bodyOf(t, own) != bodyOf(t, d) {
		t.Fatalf("%+v", own)
	}
	for _, c := range []struct {
		d           *millrace.Document
		field, want string
	}{
		{d, "Vary", "Accept"},
		{d, "Cache-Control", "private, max-age=0, must-revalidate"},
		{d, "Content-Location", "https://example.com/post/index.md"},
		{d, "X-Robots-Tag", ""},
		{own, "Vary", ""},
		{own, "Cache-Control", "max-age=0, must-revalidate"},
		{own, "X-Robots-Tag", "noindex"},
		{own, "Link", `<https://example.com/post/>; rel="canonical"`},
		{own, "Content-Type", "text/markdown; charset=utf-8"},
		{own, "Last-Modified", "Thu, 02 Jan 2025 03:04:05 GMT"},
	} {
		if got := c.d.Header.Get(c.field); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.field, c.d.Path, got, c.want)
		}
	}
	var count int
	if _, err := fmt.Sscan(own.Header.Get("X-Markdown-Tokens"), &count); err != nil || count < len(bodyOf(t, own))/8 || count > len(bodyOf(t, own))/2 {
		t.Errorf("%d tokens (%v) in %d bytes", count, err, len(bodyOf(t, own)))
	}
	if d := find(t, NewPublisher(&protocol.PublisherOptions{Own: []any{&PublisherOptions{MarkdownPublic: true}}}), v, "/post/", md); strings.Contains(d.Header.Get("Cache-Control"), "private") {
		t.Error("the response is private although caches respect Vary")
	}
	for path, want := range map[string]string{
		"/post/?p=2": "/post/index.md?p=2", "/": "/index.md", "/post/index.md": "/post/index.md", "/post.md": "",
		"/post/?s=word": "", "/post": "", "/empty": "", "/empty.md": "", "/tag/": "", "/tag/index.md": "", "/nothing.md": "",
	} {
		got := ""
		if d := find(t, p, v, path, md); d != nil {
			got = d.Path
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	post := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/post/", nil)
	post.Header.Set("Accept", md)
	if d, err := p.Find(t.Context(), v, post); err == nil {
		t.Errorf("a POST to a page returns %+v", d)
	}
	elsewhere := protocoltest.NewView(millrace.Site{Base: testSite.Base, EndpointBase: "https://docs.example.com/"}, []*millrace.Page{textPage("/post/", "Text")}, Protocol().Tagger)
	if d := find(t, p, elsewhere, "/post/", md); d != nil {
		t.Errorf("documents on another host are negotiated: %+v", d)
	}

	n := p.Advertise(v)
	for path, want := range map[string]string{"/empty": empty, "/tag/": archived, "/post/": "", "/nothing": ""} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		for _, accept := range []string{md, "*/*"} {
			r.Header.Set("Accept", accept)
			field, why, err := n.ExplainFallback(t.Context(), r)
			if accept != md {
				want = ""
			}
			if err != nil || why != want || (field == "") != (want == "") {
				t.Errorf("%s: %q says %q (%v), want %q", path, field, why, err, want)
			}
		}
	}
	links, err := n.Page(t.Context(), "/post/")
	want := []millrace.Link{
		{URL: "https://example.com/post/index.md", Rel: "alternate", Type: md, Vary: "Accept"},
		{URL: "https://example.com/llms.txt", Rel: "describedby", Type: "text/plain"},
	}
	if diff := cmp.Diff(want, links); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if links, err := n.Page(t.Context(), "/empty"); len(links) > 0 || err != nil {
		t.Errorf("a page without Markdown links to %v, %v", links, err)
	}
}

// manyPages returns the pages of a site with small and large folders, one of them very large.
func manyPages(many int) []*millrace.Page {
	var pages []*millrace.Page
	add := func(format string, n int) {
		for i := range n {
			p := textPage(fmt.Sprintf(format, i), "x")
			p.Title = strings.Repeat("A *long* title [of] ", i%9)
			p.Description = strings.Repeat("What | <it> says. ", i%30)
			p.Blocks = millrace.TextBlocks("x")
			pages = append(pages, p)
		}
	}
	add("/", 1)
	pages[0].URL, pages[0].Title, pages[0].Description = "/", "A mill", "All about mills."
	add("/about-%d/", 20)
	add("/docs/guide/%d", 150)
	add("/docs/api/v1/%d.html", 400)
	add("/docs/%d", 30)
	add("/notes/%d/", 12)
	add("/flat/%d?q="+strings.Repeat("y", 40), many)
	return pages
}

// TestLists checks that every page is in one list, that the lists link to each other, and that
// none is longer than readers accept.
func TestLists(t *testing.T) {
	v := viewOf(manyPages(1500)...)
	pub := NewPublisher(&protocol.PublisherOptions{Own: []any{&PublisherOptions{LLMsFull: true}}})
	texts, documents := map[string]string{}, map[string]int{}
	for d, err := range pub.All(t.Context(), v) {
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasSuffix(d.Path, ".txt") && d.Path != fullPath:
			if texts[d.Path] = bodyOf(t, d); utf8.RuneCountInString(texts[d.Path]) >= maxFile {
				t.Errorf("%s has %d characters", d.Path, len(texts[d.Path]))
			}
		case strings.HasPrefix(d.Header.Get("Content-Type"), "text/markdown"):
			documents[d.Path] = 0
		}
	}
	reached := map[string]bool{}
	var follow func(path string)
	follow = func(path string) {
		if reached[path] {
			t.Errorf("two lists link to %s", path)
			return
		}
		reached[path] = true
		text, ok := texts[path]
		if !ok {
			t.Errorf("%s is listed but does not exist", path)
		}
		if !strings.HasPrefix(text, "# ") {
			t.Errorf("%s has no name:\n%s", path, text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.HasPrefix(line, "- ") {
				continue
			}
			_, target, _ := strings.Cut(line, "](https://example.com")
			target, _, _ = strings.Cut(target, ")")
			switch {
			case strings.HasPrefix(target, "/feed"), target == fullPath:
			case strings.HasSuffix(target, ".txt"):
				follow(target)
			default:
				if _, ok := documents[target]; !ok {
					t.Errorf("%s names %q, in %q", path, target, line)
				}
				documents[target]++
			}
		}
	}
	follow("/llms.txt")
	for path := range texts {
		if !reached[path] {
			t.Errorf("no list links to %s", path)
		}
	}
	for path, n := range documents {
		if n != 1 {
			t.Errorf("%s is listed %d times", path, n)
		}
	}
	if !strings.HasPrefix(texts["/llms.txt"], "# A mill\n\n> All about mills.\n") || !strings.Contains(texts["/llms.txt"], "\n## Optional\n") {
		t.Errorf("/llms.txt starts with\n%.300s", texts["/llms.txt"])
	}
	n := pub.Advertise(v)
	for pagePath, want := range map[string]string{"/about-1/": "/llms.txt", "/docs/api/v1/3.html": "/docs/api/v1/llms.txt", "/docs/guide/3": "/docs/guide/llms.txt", "/flat/7?q=" + strings.Repeat("y", 40): "/flat/llms.txt"} {
		links, err := n.Page(t.Context(), pagePath)
		if err != nil || len(links) != 2 || links[1].URL != "https://example.com"+want || texts[want] == "" {
			t.Errorf("%s is covered by %v, %v", pagePath, links, err)
		}
	}
}

// TestListsStay checks that a change in one folder changes only its lists and those above.
func TestListsStay(t *testing.T) {
	pages := manyPages(600)
	pub := NewPublisher(nil)
	texts := func(v millrace.View) map[string]*millrace.Document {
		out := map[string]*millrace.Document{}
		for d, err := range pub.All(t.Context(), v) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(d.Path, ".txt") {
				out[d.Path] = d
			}
		}
		return out
	}
	before := texts(viewOf(pages...))
	more := append(slices.Clone(pages), textPage("/docs/guide/new", "x"))
	after := texts(protocoltest.NewView(millrace.Site{Base: testSite.Base, Seq: 2}, more, Protocol().Tagger))
	unchanged := 0
	for path, d := range after {
		if before[path] == nil {
			continue
		}
		same := bodyOf(t, d) == bodyOf(t, before[path])
		if touched := d.Parts.Version != before[path].Parts.Version; !same && !touched {
			t.Errorf("%s has changed, but its version has not", path)
		} else if same && !touched {
			unchanged++
		}
	}
	if unchanged == 0 {
		t.Error("an added page has changed every list")
	}
}

// TestOneList checks that a small site has one file, which links to all pages by folder.
func TestOneList(t *testing.T) {
	home := textPage("/", "x")
	home.Title, home.Summary = "Mill & *Race*", "Wheels."
	guides := textPage("/guides/", "x")
	guides.Title = "All guides"
	v := viewOf(home, textPage("/docs/a", "x"), textPage("/docs/b", "x"), textPage("/c/", "x"), textPage("/empty", ""), guides, textPage("/guides/a", "x"))
	var texts []string
	for d, err := range NewPublisher(nil).All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(d.Path, ".txt") {
			texts = append(texts, d.Path+"\n"+bodyOf(t, d))
		}
	}
	want := []string{`/llms.txt
# Mill \& \*Race\*

> Wheels.

Each link leads to the Markdown of a page. The page's own address also returns it for a request with Accept: text/markdown. Changes: https://example.com/feed.atom and https://example.com/feed.json

## Pages

- [Mill \& \*Race\*](https://example.com/index.md): Wheels.
- [Title of /c/](https://example.com/c/index.md)

## Docs

- [Title of /docs/a](https://example.com/docs/a.md)
- [Title of /docs/b](https://example.com/docs/b.md)

## All guides

- [All guides](https://example.com/guides/index.md)
- [Title of /guides/a](https://example.com/guides/a.md)
`}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

func TestFull(t *testing.T) {
	v := viewOf(textPage("/a", "One."), textPage("/b", "Two."), textPage("/empty", ""))
	for d, err := range NewPublisher(&protocol.PublisherOptions{Own: []any{&PublisherOptions{LLMsFull: true}}}).All(context.Background(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Path != fullPath {
			continue
		}
		want := "# Title of /a\n\nSource: https://example.com/a\n\nOne.\n\n---\n\n# Title of /b\n\nSource: https://example.com/b\n\nTwo.\n"
		if got := bodyOf(t, d); got != want || !d.Large {
			t.Errorf("%s", cmp.Diff(want, got))
		}
		return
	}
	t.Error("the file does not exist")
}

func TestMarkdown(t *testing.T) {
	p := textPage("/post/", "")
	p.Title, p.Description, p.Author, p.Tags, p.Kind = "A \"mill\"", "It\nturns.", "Ada", []string{"a", "b: c"}, millrace.Article
	p.Blocks = []millrace.Block{
		{Type: millrace.HeadingBlock, Level: 1, Text: "A \"mill\""},
		{Type: millrace.TextBlock, Text: "See it.", Spans: []millrace.Span{{Type: millrace.LinkSpan, Start: 4, End: 6, URL: "https://example.com/it#x"}}},
	}
	const want = `---
index: https://example.com/llms.txt
title: "A \"mill\""
description: "It turns."
url: "https://example.com/post/"
author: "Ada"
modified: 2025-01-02T03:04:05Z
kind: "article"
tags: ["a", "b: c"]
---

# A "mill"

See [it](https://example.com/it#x).
`
	got := bodyOf(t, find(t, NewPublisher(nil), viewOf(p), "/post/index.md", ""))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMatter parses front matter in the forms that other hosts write.
func TestMatter(t *testing.T) {
	const in = "\ufeff---\r\n# a comment\r\ntitle: 'It''s here'\r\ndescription: >-\r\n  two\r\n  lines\r\ndate: 2024-05-06\r\nauthors:\r\n  - Ada\r\n  - Bo\r\ntags: [x, \"y z\"]\r\nlastUpdated: 2024-05-07 08:09:10\r\ncover:\r\n  image: z.png\r\nlang: en # so\r\n---\r\n\r\n# It's here\r\n\r\nSee [b](../b) and ![c](c.png \"d\").\r\n"
	p, err := decodeMarkdown(t.Context(), []byte(in), "https://example.com/docs/a")
	if err != nil {
		t.Fatal(err)
	}
	want := &millrace.Page{
		URL: "https://example.com/docs/a", Title: "It's here", Description: "two lines", Author: "Ada, Bo", Language: "en", Tags: []string{"x", "y z"},
		Published: time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC), Modified: time.Date(2024, 5, 7, 8, 9, 10, 0, time.UTC),
		Known: millrace.FieldTitle | millrace.FieldDescription | millrace.FieldAuthor | millrace.FieldPublished | millrace.FieldModified |
			millrace.FieldTags | millrace.FieldLanguage | millrace.FieldContent,
		Detail: millrace.DetailBlocks,
		Blocks: []millrace.Block{
			{Type: millrace.TextBlock, Text: "See b and .", Spans: []millrace.Span{{Type: millrace.LinkSpan, Start: 4, End: 5, URL: "https://example.com/b"}}},
			{Type: millrace.ImageBlock, URL: "https://example.com/docs/c.png", Alt: "c", Caption: "d"},
		},
	}
	if d := diff(want, p); d != "" {
		t.Error(d)
	}
	p, err = decodeMarkdown(t.Context(), []byte("# Name\n\nText"), "https://example.com/")
	if err != nil || p.Title != "Name" || len(p.Blocks) != 1 || p.Known != millrace.FieldTitle|millrace.FieldContent {
		t.Errorf("%+v, %v", p, err)
	}
	_, err = decodeMarkdown(t.Context(), []byte("a\nb \xff"), "https://example.com/")
	if f, ok := errors.AsType[*millrace.FormatError](err); !ok || f.Position != "line 2" {
		t.Errorf("%v", err)
	}
}
