package mirror_test

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/mirror"
)

// If Enough ends a run, every requested page is stored, and the next run continues. Pages that the
// run did not reach are not deleted.
func TestEnough(t *testing.T) {
	src, to := &site{pages: pages(100)}, newSink()
	enough := errors.New("enough")
	for i := range 10 {
		left := 11
		r, err := mirror.Sync(t.Context(), "test", src, to, &mirror.Options{Concurrency: 3, Enough: func() error {
			if left--; left < 0 {
				return enough
			}
			return nil
		}})
		want := min(100, 11*(i+1))
		if asked := len(src.takeAsked()); len(to.titles) != want || r.Deleted+r.UnconfirmedDeletions != 0 || asked > 11 || errors.Is(err, enough) != (want < 100) {
			t.Fatalf("run %d: %d pages, %d requested, %v", i, len(to.titles), asked, err)
		}
	}
}
