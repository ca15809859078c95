package proxy

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/net/html"
)

const mark = "<link MARK>"

// inject sends a page through an injector in pieces of size bytes.
func inject(t testing.TB, page string, size int) string {
	t.Helper()
	var b bytes.Buffer
	in := &injector{w: &b, insert: []byte(mark)}
	for rest := page; rest != ""; {
		n := min(size, len(rest))
		if m, err := in.Write([]byte(rest[:n])); m != n || err != nil {
			t.Fatalf("Write: %d of %d, %v", m, n, err)
		}
		rest = rest[n:]
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// "^" marks where the links must be inserted.
var pages = []struct{ name, page string }{
	{"plain", "<!DOCTYPE html>\n<html><head><title>T</title>^</head><body>x</body></html>"},
	{"no end of head", "<html><head><title>T</title>^<body>x"},
	{"no head", "<html>^<body>x</body></html>"},
	{"no html", "<title>T</title>\n^<p>x"},
	{"text only", "^hello"},
	{"text after space", " \n^hello"},
	{"nothing", "^"},
	{"space", " \n^"},
	{"head in a comment", "<!-- <head></head> --><head>^</head>"},
	{"odd comments", "<!--><!---><!-- > -- ->--!><!-- --><head>^</head>"},
	{"dashes", "<!-----------><head>^</head>"},
	{"head in a script", `<head>^<script>"</head><body>"</script></head>`},
	{"head in a title", "<head><title>a </head> <body> b</title>^</head>"},
	{"almost the end of a title", "<head><title></titl </titlex></TITLE>^</head>"},
	{"head in a style", "<head><style>a:after{content:'</head>'}</style>^</head>"},
	{"head in an attribute", `<head><meta content="</head><body>">^</head>`},
	{"single quotes", `<head><meta content='"></head>' name=x>^</head>`},
	{"unquoted value", `<head><meta a=b="c>^</head>`},
	{"quote in a name", `<head><meta a"b>^</head>`},
	{"equals in spaces", "<head><meta content = \n '</head>' />^</head>"},
	{"BOM", "\ufeff<!DOCTYPE html><head>^</head>"},
	{"BOM and text", "\ufeff^text"},
	{"upper case", "<!DOCTYPE HTML><HTML><HEAD><TITLE>T</TITLE>^</HEAD><BODY>"},
	{"xhtml", `<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0//EN" "x"><html xmlns="http://www.w3.org/1999/xhtml"><head><meta http-equiv="a"/>^</head>`},
	{"header is not head", "<html>^<header>x</header>"},
	{"noscript", `<head><meta charset="utf-8">^<noscript><img></noscript></head>`},
	{"template", "<head>^<template><body></template></head>"},
	{"custom", "<head>^<my-element></my-element>"},
	{"digits", "<head>^<h1>x"},
	{"no tag", "<head>^< head>"},
	{"empty end", "<head>^</>x"},
	{"lone bracket", "<head><"},
	{"cut in a name", "<html><he"},
	{"cut in a comment", "<!-- <head>"},
	{"cut in a title", "<title>T"},
	{"stray end", "</title></meta ><head>^</head>"},
	{"bogus", "<![CDATA[x]]><!x><!><!-x><head>^</head>"},
	{"latin-1", "<head><title>caf\xe9</title>^</head>"},
	{"latin-1 text", "<html>^caf\xe9"},
	{"base and link", `<head><base href="/"><link rel=x>^</head>`},
	{"NUL", "\x00<head></head>"},
	{"NUL in a name", "<h\x00e\x00a\x00d\x00>\x00"},
	{"UTF-16 BOM", "\xff\xfe<\x00h\x00>\x00"},
}

func TestInject(t *testing.T) {
	for _, c := range pages {
		page, want := strings.Replace(c.page, "^", "", 1), strings.Replace(c.page, "^", mark, 1)
		for _, size := range []int{1, 2, 3, 7, 1 << 20} {
			if got := inject(t, page, size); got != want {
				t.Errorf("%s in pieces of %d:\n got %q\nwant %q", c.name, size, got, want)
			}
		}
	}
	var utf bytes.Buffer
	for _, c := range utf16.Encode([]rune("<html><head></head><body>x")) {
		utf.Write([]byte{byte(c >> 8), byte(c)})
	}
	if got := inject(t, utf.String(), 5); got != utf.String() {
		t.Errorf("UTF-16 without a mark: %q", got)
	}
}

// A page of any size is passed on as it arrives.
func TestInjectStreams(t *testing.T) {
	for name, part := range map[string]string{
		"comment": "<!-- " + strings.Repeat("x", 1000), "title": "<title>" + strings.Repeat("<", 1000),
		"attribute": `<meta content="` + strings.Repeat(">", 1000), "tags": strings.Repeat("<meta>", 200),
		"style": "<style>" + strings.Repeat("</styl", 200),
	} {
		var b bytes.Buffer
		in := &injector{w: &b, insert: []byte(mark)}
		if _, err := io.WriteString(in, "<head>"+part); err != nil {
			t.Fatal(err)
		}
		if delayed := len("<head>"+part) - b.Len(); delayed > longestName {
			t.Errorf("%s: %d bytes are buffered", name, delayed)
		}
	}
}

// Any page is passed on completely, with the links at most once. A parser sees a change only in
// the elements of the head.
func FuzzInject(f *testing.F) {
	for _, c := range pages {
		f.Add(strings.Replace(c.page, "^", "", 1), 3)
	}
	f.Fuzz(func(t *testing.T, page string, size int) {
		if strings.Contains(page, "MARK") {
			t.Skip()
		}
		got := inject(t, page, max(1, size%100))
		if strings.Replace(got, mark, "", 1) != page {
			t.Fatalf("%q became %q", page, got)
		}
		if other := inject(t, page, len(page)+1); other != got {
			t.Fatalf("the result for %q depends on the pieces: %q, %q", page, got, other)
		}
		if !strings.Contains(got, mark) {
			return
		}
		// Links in a comment would be lost; links in text would be visible.
		for z := html.NewTokenizer(strings.NewReader(got)); z.Next() != html.ErrorToken; {
			tok := z.Token()
			if tok.Type != html.StartTagToken && strings.Contains(tok.Data, "MARK") {
				t.Fatalf("%q: the links are in a %v", got, tok.Type)
			}
		}
	})
}
