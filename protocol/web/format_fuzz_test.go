package web

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/protocoltest"
)

func at(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestDecodeFeed(t *testing.T) {
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const head = `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/blog/">`
	for name, c := range map[string]struct {
		body string
		want *feedDoc
	}{
		"Atom": {
			head + `<updated>2026-01-02T03:04:05Z</updated><link rel="next" href="feed-2"/>
			<entry><id> urn:a </id><updated>2026-01-02T04:04:05+01:00</updated><link href="a"/><link rel="Alternate" type="Text/Markdown; charset=utf-8" href="a.md"/><link rel="self" href="no"/></entry>
			<entry><link type="application/pdf" href="no"/><id>https://x.test/b</id><source><id>no</id><updated>2020-01-01T00:00:00Z</updated></source></entry></feed>`,
			&feedDoc{Updated: day, Next: "https://x.test/blog/feed-2", Entries: []feedEntry{
				{ID: "urn:a", URL: "https://x.test/blog/a", Alternate: "https://x.test/blog/a.md", Updated: day},
				{ID: "https://x.test/b", URL: "https://x.test/b"},
			}},
		},
		"tombstones": {
			`<a:feed xmlns:a="http://www.w3.org/2005/Atom" xmlns:t="http://purl.org/atompub/tombstones/1.0"><a:updated>2026-01-02T03:04:05.5Z</a:updated>
			<t:deleted-entry ref="urn:a" when="2026-01-02T03:04:05Z"><a:link href="/a"/></t:deleted-entry><t:deleted-entry ref="https://x.test/b" when="no"/></a:feed>`,
			&feedDoc{Updated: day.Add(time.Second / 2), Tombstones: true, Entries: []feedEntry{
				{ID: "urn:a", URL: "https://x.test/a", Updated: day, Gone: true}, {ID: "https://x.test/b", URL: "https://x.test/b", Gone: true},
			}},
		},
		"none of them yet": {`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:t="http://purl.org/atompub/tombstones/1.0"/>`, &feedDoc{Tombstones: true}},
		"JSON": {
			"\uFEFF" + ` {"version":"https://jsonfeed.org/version/1.1","next_url":"/2.json","items":[
			{"id":"1","url":"/a","date_published":"2020-01-01T00:00:00Z","date_modified":"2026-01-02T03:04:05Z","attachments":[{"url":"/a.png","mime_type":"image/png"},{"url":"/a.md","mime_type":"text/markdown"}]},
			{"id":"https://x.test/b","date_published":"2026-01-02T03:04:05Z"}],"_deleted":{"items":[{"id":"https://x.test/c","date_deleted":"2026-01-02T03:04:05Z"}]}}`,
			&feedDoc{Updated: day, Tombstones: true, Next: "https://x.test/2.json", Entries: []feedEntry{
				{ID: "1", URL: "https://x.test/a", Alternate: "https://x.test/a.md", Updated: day},
				{ID: "https://x.test/b", URL: "https://x.test/b", Updated: day},
				{ID: "https://x.test/c", URL: "https://x.test/c", Updated: day, Gone: true},
			}},
		},
	} {
		doc, err := decodeFeed([]byte(c.body), at(t, "https://x.test/feed"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, doc); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDecodeFeedErrors(t *testing.T) {
	for body, want := range map[string]string{
		"":        "empty line 1",
		"<rss/>":  "xml-root line 1",
		"<feed/>": "xml-root line 1",
		"<feed xmlns='http://www.w3.org/2005/Atom'><entry>":                                             "invalid line 1",
		`<?xml version="1.0" encoding="iso-8859-1"?><feed/>`:                                            "charset line 1",
		strings.Repeat(`<feed xmlns="http://www.w3.org/2005/Atom">`, 70):                                "xml-depth line 1",
		`<feed xmlns="http://www.w3.org/2005/Atom">` + strings.Repeat("<a/>", maxFeedNodes) + `</feed>`: "xml-depth line 1",
		`{"items":[]}`:                  "unknown-version /version",
		`{"version":1}`:                 "json-type",
		`{"version":"a","version":"b"}`: "json-duplicate",
	} {
		doc, err := decodeFeed([]byte(body), at(t, "https://x.test/"))
		if got := protocoltest.ErrorAt(err); got != want {
			t.Errorf("%.60q: %+v, %s, want %s: %v", body, doc, got, want, err)
		}
	}
}

func FuzzDecodeFeed(f *testing.F) {
	f.Add(goodAtom)
	f.Add(goodJSONFeed)
	f.Add(`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="//b"><entry xml:base="c"><link href="?x"/></entry>`)
	f.Fuzz(func(t *testing.T, body string) {
		doc, err := decodeFeed([]byte(body), at(t, "https://x.test/feed"))
		if (doc == nil) != (err != nil) {
			t.Fatalf("%+v, %v", doc, err)
		}
		if err != nil {
			return
		}
		for _, e := range doc.Entries {
			for _, u := range []string{e.URL, e.Alternate, doc.Next} {
				if c, err := canon.URL(u); u != "" && (err != nil || c != u) {
					t.Errorf("%q is not a canonical URL", u)
				}
			}
		}
	})
}

func FuzzLLMs(f *testing.F) {
	f.Add(goodLLMs)
	f.Add("# A\n~~~\n# B\n~~~~\n## C\n- [](<>)\n- [a](b\n")
	f.Fuzz(func(t *testing.T, body string) {
		doc := decodeLLMs([]byte(body))
		if doc == nil {
			return
		}
		if doc.Title == "" {
			t.Errorf("%+v", doc)
		}
		lines := strings.Count(body, "\n") + 1
		for _, l := range doc.Links {
			if l.Line < 1 || l.Line > lines {
				t.Errorf("%+v", l)
			}
		}
	})
}

// The names of Markdown are canonical, and differ from the URL of the page.
func FuzzAlternateName(f *testing.F) {
	for _, u := range []string{"https://x.test/", "https://x.test/a/?b=/c.html", "https://x.test/a.htm", "https://x.test/a//"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, page string) {
		page, err := canon.URL(page)
		if err != nil {
			return
		}
		for _, name := range usualNames(page) {
			if c, err := canon.URL(name); err == nil && (c != name || c == page || canon.Origin(c) != canon.Origin(page)) {
				t.Errorf("%s is the name of %s", name, page)
			}
		}
	})
}
