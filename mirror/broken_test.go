package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// cut is the error of a truncated response.
type cut struct{}

func (cut) Error() string   { return "broken off" }
func (cut) BrokenOff() bool { return true }
func (cut) Unwrap() error   { return millrace.ErrUnavailable }

// frail is a site that truncates each response a number of times.
type frail struct {
	*site
	lists int
	pages map[string]int
	asked int
}

func (f *frail) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		if f.lists--; f.lists >= 0 {
			yield(millrace.Change{}, fmt.Errorf("list: %w", cut{}))
			return
		}
		f.site.Changes(ctx, since)(yield)
	}
}

func (f *frail) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	f.site.mu.Lock()
	f.asked++
	f.pages[have.URL]--
	broken := f.pages[have.URL] >= 0
	f.site.mu.Unlock()
	if broken {
		return nil, fmt.Errorf("document: %w", cut{})
	}
	return f.site.Page(ctx, have)
}

// A truncated response is requested once more.
func TestBrokenOff(t *testing.T) {
	for _, tt := range []struct{ lists, page, asked, missed int }{{0, 0, 10, 0}, {1, 1, 11, 0}, {1, 2, 11, 1}} {
		src, to := &frail{site: &site{pages: pages(10)}, lists: tt.lists, pages: map[string]int{"/p003": tt.page}}, newSink()
		r, err := mirror.Sync(t.Context(), "test", src, to, nil)
		if err != nil || src.asked != tt.asked || r.Added != 10-tt.missed || r.Unavailable != tt.missed {
			t.Errorf("%+v: asked %d times, %v, %+v", tt, src.asked, err, r)
		}
	}
	src := &frail{site: &site{pages: pages(10)}, lists: 2, pages: map[string]int{}}
	if r, err := mirror.Sync(t.Context(), "test", src, newSink(), nil); !errors.Is(err, millrace.ErrUnavailable) || r.Added != 0 {
		t.Errorf("a list that is truncated twice: %v, %+v", err, r)
	}
}
