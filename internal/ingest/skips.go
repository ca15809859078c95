package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"

	"github.com/millrace/millrace/mirror"
)

// skipGroup is the pages that were skipped for one reason.
type skipGroup struct {
	mirror.Skip // the first of them
	pages       int
}

// skipGroups groups skipped pages by the code of the reason, or by its text if
// the code only names the kind of the error. The zero value is empty.
type skipGroups struct {
	groups []skipGroup
	at     map[string]int // index in groups by reason
}

// maxReasons is how many reasons have a group of their own; pages with others are one
// group.
const maxReasons = 20

// add adds a page.
func (s *skipGroups) add(skip mirror.Skip) {
	key := skip.Code
	switch key {
	case "", "not-found", "invalid", "conflict", "forbidden", "too-large", "unavailable", "internal":
		key = skip.Reason
	}
	i, ok := s.at[key]
	if !ok && len(s.groups) >= maxReasons {
		key, skip.Reason = "", "other reasons"
		i, ok = s.at[key]
	}
	if !ok {
		if i = len(s.groups); i == 0 {
			s.at = map[string]int{}
		}
		s.at[key], s.groups = i, append(s.groups, skipGroup{Skip: skip})
	}
	s.groups[i].pages++
}

// groupSkips groups pages, the most frequent reason first.
func groupSkips(skips []mirror.Skip) []skipGroup {
	var s skipGroups
	for _, skip := range skips {
		s.add(skip)
	}
	slices.SortStableFunc(s.groups, func(a, b skipGroup) int { return b.pages - a.pages })
	return s.groups
}

// text describes the group in a line: what was done to what.
func (g skipGroup) text(verb, nouns string) string {
	url := cmp.Or(g.URL, "an entry without a URL")
	if g.pages == 1 {
		return fmt.Sprintf("%s %s: %s", verb, url, g.Reason)
	}
	return fmt.Sprintf("%s %d %s, such as %s: %s", verb, g.pages, nouns, url, g.Reason)
}

// logSkips logs one warning for each reason.
func logSkips(log *slog.Logger, groups []skipGroup) {
	for _, g := range groups {
		log.Warn("pages skipped", "pages", g.pages, "url", g.URL, "err", g.Reason, "code", g.Code)
	}
}
