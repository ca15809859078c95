package crawl

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

func TestParseFeed(t *testing.T) {
	want := time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC)
	for name, doc := range map[string]string{
		"rss":  `<?xml version="1.0" encoding="ISO-8859-1"?><rss version="2.0"><channel><title>x</title><item><title>A</title><link>https://a.example/a</link><pubDate>Mon, 02 Jan 2006 15:04:05 GMT</pubDate></item></channel></rss>`,
		"rdf":  `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><item><title>A</title><link>https://a.example/a</link><dc:date>2006-01-02T15:04:05Z</dc:date></item></rdf:RDF>`,
		"atom": `<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>A</title><link rel="alternate" href="https://a.example/a"/><published>2001-01-01T00:00:00Z</published><updated>2006-01-02T15:04:05Z</updated></entry></feed>`,
		"json": `{"version":"https://jsonfeed.org/version/1.1","title":"x","items":[{"id":"1","url":"https://a.example/a","date_modified":"2006-01-02T15:04:05Z"}]}`,
	} {
		items, err := parseFeed([]byte(doc))
		if err != nil || len(items) != 1 || items[0].url != "https://a.example/a" || !items[0].modified.Equal(want) {
			t.Errorf("%s: %v, %v", name, items, err)
		}
	}
	for name, c := range map[string]struct {
		doc  string
		want error
	}{
		"html":   {"<!DOCTYPE html><title>x</title>", millrace.ErrInvalid},
		"broken": {"<rss><channel><item>", millrace.ErrInvalid},
		"empty":  {"", millrace.ErrInvalid},
		"deep":   {"<rss><channel>" + strings.Repeat("<a:b>", 1_000_000), millrace.ErrTooLarge},
		"json":   {`{"items":` + strings.Repeat("[", 1_000_000), millrace.ErrInvalid},
	} {
		if _, err := parseFeed([]byte(c.doc)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseFeed(f *testing.F) {
	f.Add([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/a"/></entry></feed>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := parseFeed(data)
		if err != nil && !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
			t.Errorf("the error contains no reason: %v", err)
		}
		if len(items) > maxItems {
			t.Errorf("%d items", len(items))
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	f.Add(string((&cursor{Format: format, Soft: &soft{Found: true, Title: "x"}}).encode()))
	f.Fuzz(func(t *testing.T, s string) {
		c, ok := parseCursor(millrace.Cursor(s))
		if !ok || s == "" {
			return
		}
		again, ok := parseCursor(c.encode())
		if !ok || again.encode() != c.encode() {
			t.Errorf("%q was read as %q", s, c.encode())
		}
	})
}
