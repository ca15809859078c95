package mirror_test

import (
	"fmt"
	"testing"
)

// If the pages of a site return a few at a time during a rebuild, no page is deleted.
func TestRebuild(t *testing.T) {
	src, to := &site{pages: pages(40)}, newSink()
	run(t, src, to, nil)
	src.pages = nil
	for i := range 41 {
		if r := run(t, src, to, nil); r.Deleted != 0 || len(to.titles) != 40 {
			t.Fatalf("with %d of 40 pages: %+v", i, r)
		}
		src.pages = pages(i + 1)
		if i == 39 {
			src.pages["/new"] = "v1"
			break
		}
	}
	if r := run(t, src, to, nil); r.Added != 1 || r.UnconfirmedDeletions != 0 || r.Deleted != 0 {
		t.Errorf("after the rebuild: %+v", r)
	}
}

// If a few more pages are missing in the next run, this run still confirms the loss.
func TestGrowingLoss(t *testing.T) {
	src, to := &site{pages: pages(40)}, newSink()
	run(t, src, to, nil)
	for i := range 20 {
		delete(src.pages, fmt.Sprintf("/p%03d", i))
	}
	if r := run(t, src, to, nil); r.UnconfirmedDeletions != 20 {
		t.Fatalf("half of the pages are missing: %+v", r)
	}
	delete(src.pages, "/p020")
	if r := run(t, src, to, nil); r.Deleted != 21 {
		t.Errorf("one more page is missing: %+v", r)
	}
}
