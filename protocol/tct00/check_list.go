package tct00

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

func checkSitemap(_ context.Context, s *survey, fail check.Fail) error {
	if s.list == nil {
		fail(strings.TrimSuffix(s.folder, "/")+listName, s.why, "200 and a JSON object with version and items")
	}
	return nil
}

func checkVersion(l *seenList, fail check.Fail) {
	if raw := l.fields["version"]; string(raw) != "1" {
		fail(l.url, "version: "+shown(raw), "the integer 1")
	}
}

func checkListProfile(l *seenList, fail check.Fail) {
	if s, ok := jsonText(l.fields["profile"]); !ok || s == "" {
		fail(l.url, "profile: "+shown(l.fields["profile"]), `a string, such as "tct-1"`)
	}
}

func checkItems(l *seenList, fail check.Fail) {
	if l.items == nil {
		fail(l.url, "items: "+tct.Short(shown(l.fields["items"])), "an array of objects")
	}
	for i, raw := range l.items {
		if readItem(raw).fields == nil {
			fail(l.url, fmt.Sprintf("items/%d: %s", i, raw), "an object with cUrl, mUrl and contentHash")
		}
	}
}

// each gives the items that are objects; false if there is none.
func (l *seenList) each(f func(at int, it *seenItem)) bool {
	some := false
	if l == nil {
		return false
	}
	for i, raw := range l.items {
		if it := readItem(raw); it.fields != nil {
			some = true
			f(i, it)
		}
	}
	return some
}

func checkCURL(_ context.Context, s *survey, fail check.Fail) error {
	if !s.list.each(func(i int, it *seenItem) {
		if _, err := canon.URL(it.cURL); err != nil {
			fail(s.list.url, fmt.Sprintf("items/%d/cUrl: %s", i, shown(it.fields["cUrl"])), "an absolute http or https URL")
		}
	}) {
		return check.ErrNotApplicable
	}
	for _, p := range s.pages {
		if p.item != nil && p.ok() && p.curl != "" && disputed(p) == p.curl {
			fail(p.murl, "cUrl: "+p.curl, p.fieldURL()+", as the M-URL and its canonical link say")
		}
	}
	return nil
}

func checkMURL(_ context.Context, s *survey, fail check.Fail) error {
	if !s.list.each(func(i int, it *seenItem) {
		if m, err := canon.URL(it.mURL); err != nil || !s.near(m) {
			fail(s.list.url, fmt.Sprintf("items/%d/mUrl: %s", i, shown(it.fields["mUrl"])), "an absolute http or https URL of the site")
		}
	}) {
		return check.ErrNotApplicable
	}
	for _, p := range s.pages {
		const want = "200 and the JSON of an item of the list"
		switch {
		case p.item == nil, p.ok():
		case unsure(p.err):
			return p.err
		case p.err != nil:
			fail(p.murl, p.err.Error(), want)
		case p.resp.Status == http.StatusUnauthorized: // no-leak
		case p.resp.Status != http.StatusOK:
			fail(p.murl, tct.Status(p.resp), want)
		default:
			fail(p.murl, p.resp.BodyErr.Error(), want)
		}
	}
	return nil
}

// timestamps are forms of ISO 8601 that are in use.
var timestamps = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "20060102T150405Z0700", time.DateOnly,
}

func isTimestamp(s string) bool {
	for _, layout := range timestamps {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

func checkModified(l *seenList, fail check.Fail) {
	l.each(func(i int, it *seenItem) {
		raw, there := it.fields["modified"]
		if s, ok := jsonText(raw); there && (!ok || !isTimestamp(s)) {
			fail(l.url, fmt.Sprintf("items/%d/modified: %s", i, raw), "a timestamp, such as 2025-10-01T12:34:56Z")
		}
	})
}

func checkContentHash(l *seenList, fail check.Fail) {
	l.each(func(i int, it *seenItem) {
		if !isHash(it.hash) {
			fail(l.url, fmt.Sprintf("items/%d/contentHash: %s", i, shown(it.fields["contentHash"])), "sha256- and 64 hexadecimal digits")
		}
	})
}

// refreshes finds a redirect in the HTML of a page.
var refreshes = regexp.MustCompile(`(?i)<meta[^>]+http-equiv\s*=\s*["']?refresh`)

func checkHomeFirst(_ context.Context, s *survey, fail check.Fail) error {
	if s.list == nil || len(s.list.items) == 0 {
		return check.ErrNotApplicable
	}
	first := readItem(s.list.items[0])
	u, err := canon.URL(first.cURL)
	if err != nil {
		return check.ErrNotApplicable // c-url
	}
	if refreshes.Match(s.home.Body) {
		return check.ErrNotApplicable // where it leads to, a browser finds out
	}
	if tct.Compare(u, s.folder) == tct.Different && tct.Compare(u, s.home.URL) == tct.Different {
		fail(s.list.url, "items/0/cUrl: "+first.cURL, s.folder)
	}
	return nil
}
