package ingest

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"

	"github.com/millrace/millrace/mirror"
)

// SkipGroup contains the pages skipped for one reason.
type SkipGroup struct {
	mirror.Skip // first page of the group
	Pages       int
}

// SkipGroups groups skipped pages by the code of the reason, or by its text if the code only names
// the kind of the error. The zero value is empty.
type SkipGroups struct {
	Groups []SkipGroup
	at     map[string]int // index in Groups by reason
}

// maxReasons is the maximum number of groups. Pages with other reasons share the last group.
const maxReasons = 20

// Add adds a page.
func (s *SkipGroups) Add(skip mirror.Skip) {
	key := skip.Code
	switch key {
	case "", "not-found", "invalid", "conflict", "forbidden", "too-large", "unavailable", "internal":
		key = skip.Reason
	}
	i, ok := s.at[key]
	if !ok && len(s.Groups) >= maxReasons {
		key, skip.Reason = "", "other reasons"
		i, ok = s.at[key]
	}
	if !ok {
		if i = len(s.Groups); i == 0 {
			s.at = map[string]int{}
		}
		s.at[key], s.Groups = i, append(s.Groups, SkipGroup{Skip: skip})
	}
	s.Groups[i].Pages++
}

// GroupSkips groups pages by reason, the most frequent one first.
func GroupSkips(skips []mirror.Skip) []SkipGroup {
	var s SkipGroups
	for _, skip := range skips {
		s.Add(skip)
	}
	slices.SortStableFunc(s.Groups, func(a, b SkipGroup) int { return b.Pages - a.Pages })
	return s.Groups
}

// Text returns a line that describes the group. verb names the action, such as "skipped"; nouns
// names the pages.
func (g SkipGroup) Text(verb, nouns string) string {
	url := cmp.Or(g.URL, "an entry without a URL")
	if g.Pages == 1 {
		return fmt.Sprintf("%s %s: %s", verb, url, g.Reason)
	}
	return fmt.Sprintf("%s %d %s, such as %s: %s", verb, g.Pages, nouns, url, g.Reason)
}

// LogSkips logs one warning for each reason.
func LogSkips(log *slog.Logger, groups []SkipGroup) {
	for _, g := range groups {
		log.Warn("pages skipped", "pages", g.Pages, "url", g.URL, "err", g.Reason, "code", g.Code)
	}
}
