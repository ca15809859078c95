package web

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// The published documents pass all rules. The gateway publishes the API catalog and
// robots.txt; its tests check them.
func TestCheckPublished(t *testing.T) {
	var pages []*millrace.Page
	for i, path := range []string{"/", "/post/", "/about", "/docs/a.html", "/docs/b", "/q?x=1"} {
		pages = append(pages, &millrace.Page{
			URL: path, Title: fmt.Sprintf("Page %d", i), Author: "A. Writer", Language: "en", Section: "docs", Tags: []string{"a & b"},
			Modified: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
			Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Level: 2, Text: "A <heading>"}, {Type: millrace.TextBlock, Text: "The text."}},
		})
	}
	p := Protocol()
	s := protocoltest.Serve(p, nil)
	h := httptest.NewTLSServer(s)
	t.Cleanup(h.Close)
	v := protocoltest.NewView(millrace.Site{Base: h.URL + "/", Title: "A site"}, pages, p.Tagger)
	v = v.Next(v.Site().Time.Add(time.Hour), pages[:5], p.Tagger) // one page is deleted
	if err := s.Show(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	target, err := check.NewTarget(h.URL+"/", h.Client(), &check.TargetOptions{Decode: fetch.Decode})
	if err != nil {
		t.Fatal(err)
	}
	r, err := check.Run(t.Context(), target, []check.Suite{{Name: Name, Rules: Rules()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range r.Outcomes {
		theirs := strings.Contains(o.Rule.ID, "rfc9309") || strings.Contains(o.Rule.ID, "rfc9727") || strings.Contains(o.Rule.ID, "rfc9264") || strings.Contains(o.Rule.ID, "sitemaps-") ||
			strings.HasSuffix(o.Rule.ID, "other-tag") // the pages have no other tag
		if o.State != check.Passed && !(theirs && o.State == check.NotApplicable) {
			t.Errorf("%s: %s %s", o.Rule.ID, o.State, o.Reason)
		}
	}
	if len(r.Findings) > 0 {
		protocoltest.Explain(t, r)
	}
}
