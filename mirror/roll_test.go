package mirror_test

import (
	"fmt"
	"testing"
)

// If the pages of a site return one by one during a rebuild, no page is deleted.
func TestRebuild(t *testing.T) {
	src, to := &site{pages: pages(40)}, newSink()
	run(t, src, to, nil)
	src.pages = nil
	for i := range 41 {
		if r := run(t, src, to, nil); r.Deleted != 0 || len(to.titles) != 40 {
			t.Fatalf("with %d of 40 pages there: %+v", i, r)
		}
		src.pages = pages(i + 1)
		if i == 39 {
			src.pages["/new"] = "v1"
			break
		}
	}
	if r := run(t, src, to, nil); r.Added != 1 || r.UnconfirmedDeletions != 0 || r.Deleted != 0 {
		t.Errorf("the end of it: %+v", r)
	}
}

// A loss that grows a little is confirmed by the next run.
func TestGrowingLoss(t *testing.T) {
	src, to := &site{pages: pages(40)}, newSink()
	run(t, src, to, nil)
	for i := range 20 {
		delete(src.pages, fmt.Sprintf("/p%03d", i))
	}
	if r := run(t, src, to, nil); r.UnconfirmedDeletions != 20 {
		t.Fatalf("half is gone: %+v", r)
	}
	delete(src.pages, "/p020")
	if r := run(t, src, to, nil); r.Deleted != 21 {
		t.Errorf("one more is gone: %+v", r)
	}
}
