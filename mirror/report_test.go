package mirror_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// counts contains the members of a report that measure the cost of a run.
type counts struct {
	Asked, Unmodified, Fetched int
	Text                       int64
}

// A report counts the received, requested and skipped pages.
func TestReportCounts(t *testing.T) {
	src, to := &site{pages: pages(10)}, newSink()
	check := func(what string, r *mirror.Report, want counts) {
		t.Helper()
		if d := cmp.Diff(want, counts{r.Requested, r.Unmodified, r.Fetched, r.Text}); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	check("everything is new", run(t, src, to, nil), counts{Asked: 10, Fetched: 10, Text: 20}) // each title has two bytes
	check("nothing has changed", run(t, src, to, nil), counts{})
	src.pages["/p003"] = "v20"
	check("one page has changed", run(t, src, to, nil), counts{Asked: 1, Fetched: 1, Text: 3})
	check("the list has no versions", run(t, &lyingList{src}, to, nil), counts{Asked: 10, Unmodified: 10})

	inline := stream{{Ref: millrace.Ref{URL: "/a", Version: "1"}, Page: &millrace.Page{
		URL: "/a", Title: "é", Known: millrace.FieldTitle | millrace.FieldContent, Blocks: []millrace.Block{
			{Type: millrace.TextBlock, Text: "four"},
			{Type: millrace.ListBlock, Items: []millrace.Item{{Term: "a", Text: "bc", Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "d"}}}}},
			{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: "ef"}, {Text: "g"}}}},
		},
	}}}
	inline = append(inline, millrace.Change{Ref: millrace.Ref{URL: "/b"}, Page: &millrace.Page{URL: "/a"}}) // an alias of /a
	check("a page comes with the stream", run(t, inline, newSink(), nil), counts{Fetched: 1, Text: 2 + 4 + 4 + 3})
}
