package sitemap

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// For any input, entries are valid, and at most one error occurs, as the last item. The sizes of
// the reads do not change the result.
func FuzzParse(f *testing.F) {
	f.Add([]byte(prolog + urlset + "<url><loc>https://example.com/?a=1&amp;b</loc><lastmod>2024-05-06</lastmod><priority>1.0</priority></url></urlset>"))
	f.Add([]byte(`<s:sitemapindex xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:sitemap><s:loc><![CDATA[x]]></s:loc></s:sitemap></s:sitemapindex>`))
	f.Add([]byte("\uFEFFhttps://example.com/a\r\nnone\n"))
	f.Add([]byte(packed(urlset + "<url><loc>x</loc></url></urlset>")))
	f.Add([]byte("\xFF\xFE<\x00u\x00r\x00l\x00s\x00e\x00t\x00/\x00>\x00"))
	f.Add([]byte(`<?xml version="1.0" encoding="windows-1252"?><!DOCTYPE urlset [<!ENTITY a "b">]><urlset><url><loc>&a;` + "\x80</loc></url></urlset>"))
	f.Add([]byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:x="urn:x"><x:a b="&lt;1" b="2"> t <i/>u</x:a><url><loc>x</loc></url><x:c/></urlset>`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var elements []Element
		o := &Options{MaxBytes: 1 << 20, MaxEntries: 100, Extension: "urn:x", Element: func(e Element) error {
			if elements = append(elements, e); e.Name == "" || e.Line < 1 || strings.TrimSpace(e.Text) != e.Text {
				t.Fatalf("%+v", e)
			}
			return nil
		}}
		entries, err := drain(t, bytes.NewReader(doc), o)
		for _, e := range entries {
			if e.URL == "" || len(e.URL) > maxURL || strings.TrimSpace(e.URL) != e.URL || !utf8.ValidString(e.URL) {
				t.Fatalf("URL %q", e.URL)
			}
			if e.Line < 1 || e.Priority < 0 || e.Priority > 1 || e.Modified.Year() > 9999 {
				t.Fatalf("%+v", e)
			}
		}
		if len(entries) > 100 {
			t.Fatalf("%d entries", len(entries))
		}
		if err != nil && !errors.Is(err, millrace.ErrTooLarge) {
			if _, ok := errors.AsType[*millrace.FormatError](err); !ok {
				t.Fatalf("%T %v", err, err)
			}
		}
		if len(doc) > 10_000 {
			return
		}
		first := elements
		elements = nil
		again, err2 := drain(t, iotest.OneByteReader(bytes.NewReader(doc)), o)
		if d := cmp.Diff(entries, again); d != "" || (err == nil) != (err2 == nil) {
			t.Fatalf("in pieces: %v, %v, %s", err, err2, d)
		}
		if d := cmp.Diff(first, elements); d != "" {
			t.Fatalf("elements in pieces: %s", d)
		}
	})
}
