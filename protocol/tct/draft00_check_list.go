package tct

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
)

func checkSitemap(_ context.Context, s *siteContext, fail check.Fail) error {
	if len(s.Lists) == 0 {
		fail(in(folderOf(s), listName00), strings.Join(s.Other, "; "), "200 and a JSON object with version and items")
	}
	return nil
}

// timestamps lists common layouts of ISO 8601.
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
	l.Each(func(i int, it *seenItem) {
		raw, there := it.Fields["modified"]
		if s, ok := check.JSONText(raw); there && (!ok || !isTimestamp(s)) {
			fail(l.URL, fmt.Sprintf("items/%d/modified: %s", i, raw), "a timestamp, such as 2025-10-01T12:34:56Z")
		}
	})
}

// refreshes matches a redirect in the HTML of a page.
var refreshes = regexp.MustCompile(`(?i)<meta[^>]+http-equiv\s*=\s*["']?refresh`)

func checkHomeFirst(ctx context.Context, s *siteContext, fail check.Fail) error {
	if len(s.Lists) == 0 || len(s.Lists[0].Items) == 0 {
		return check.ErrNotApplicable
	}
	first := s.Lists[0].Item(0)
	u, err := canon.URL(first.CURL)
	if err != nil {
		return check.ErrNotApplicable // rule c-url reports this
	}
	home, err := homeOf00(ctx, s)
	if err != nil {
		return err
	}
	if refreshes.Match(home.Body) {
		return check.ErrNotApplicable // only a browser can follow the refresh
	}
	if compareURLs(u, folderOf(s)) == otherURL && compareURLs(u, home.URL) == otherURL {
		fail(s.Lists[0].URL, "items/0/cUrl: "+first.CURL, folderOf(s))
	}
	return nil
}
