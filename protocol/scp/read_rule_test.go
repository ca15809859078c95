package scp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
)

// For each fault, the reader's notes and errors name the same rule as the checker.
func TestReadNamesRules(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	named := map[string]bool{}
	for i, c := range checkFaults {
		if !testkit.Soaking() && i%8 > 0 {
			continue
		}
		s := good()
		if c.make != nil {
			c.make(s)
		}
		h := s.handler()
		if c.breaks != nil {
			h = c.breaks(h)
		}
		var rules []string
		src := NewReader(clientOf(h), goodSite, &ReaderOptions{
			ReaderOptions: protocol.ReaderOptions{
				Note: func(n protocol.Note) { rules = append(rules, strings.TrimPrefix(n.Rule, Name+"/")) },
				Now:  func() time.Time { return checkedAt },
			},
		})
		for _, err := range src.Changes(t.Context(), "") {
			var skip *millrace.SkipError
			var rule *ruled
			if err != nil && !errors.As(err, &skip) && errors.As(err, &rule) {
				rules = append(rules, rule.rule)
			}
		}
		for _, rule := range rules {
			named[rule] = true
			if c.rule == "sitemap/expires" && rule == "sitemap/not-expired" {
				continue // the fault also violates that rule
			}
			if rule != c.rule && !strings.HasPrefix(rule, "reader/") {
				t.Errorf("for the fault %q of %s, the reader names %s: %q", c.name, c.rule, rule, rules)
			}
		}
	}
	if !testkit.Soaking() {
		return
	}
	for _, rule := range []string{
		"format/compression", "format/first-line", "format/json-lines", "format/pages", "metadata/id", "metadata/section", "metadata/type", "metadata/generated",
		"metadata/generated-past", "metadata/since", "metadata/version", "checksum/form", "checksum/matches", "checksum/reading", "checksum/present", "page/required",
		"page/url", "page/site", "page/title", "page/published", "page/language", "page/schema", "page/content", "page/canonical", "limits/blocks",
		"blocks/text", "blocks/heading", "blocks/link", "blocks/image", "blocks/list", "blocks/code", "blocks/table", "blocks/quote", "blocks/video", "blocks/audio",
		"blocks/duration", "blocks/icon", "blocks/captions", "blocks/chapters", "blocks/type", "blocks/url", "blocks/heading-level", "download/get", "http/content-type", "http/content-encoding",
		"sitemap/required", "sitemap/type", "sitemap/date-time", "sitemap/section", "sitemap/kind", "sitemap/generated", "sitemap/since", "sitemap/pages", "sitemap/size", "sitemap/not-expired",
	} {
		if !named[rule] {
			t.Errorf("the reader never names %s", rule)
		}
	}
}
