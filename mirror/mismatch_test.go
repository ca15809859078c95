package mirror_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// lagging is a source behind a load balancer. Its list is complete and has one cursor. Its pages
// may be older than the list, or have versions that are not in the list.
type lagging struct {
	list, pages map[string]string // URL -> version
	cursor      millrace.Cursor
	since       millrace.Cursor
	asked       []string
}

func (l *lagging) Changes(_ context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	l.since = since
	return func(yield func(millrace.Change, error) bool) {
		if since == l.cursor { // not modified
			yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: l.cursor}}, nil)
			return
		}
		for u, v := range l.list {
			if !yield(millrace.Change{Ref: millrace.Ref{URL: u, Version: v}}, nil) {
				return
			}
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: l.cursor, Complete: true}}, nil)
	}
}

func (l *lagging) Page(_ context.Context, have millrace.Ref) (*millrace.Page, error) {
	l.asked = append(l.asked, have.URL)
	v := l.pages[have.URL]
	if v == have.Version {
		return nil, millrace.ErrUnmodified
	}
	return &millrace.Page{URL: have.URL, Title: v, Version: v, Known: millrace.FieldTitle}, nil
}

func (l *lagging) run(t *testing.T, to *sink) []string {
	t.Helper()
	l.asked = nil
	run(t, l, to, &mirror.Options{Concurrency: 1})
	slices.Sort(l.asked)
	return l.asked
}

// A page that is older than the list is requested again although the list has not changed, both
// after a full response and after "not modified".
func TestPageBehindItsList(t *testing.T) {
	old := map[string]string{"/a": "1", "/b": "1"}
	src := &lagging{list: old, pages: old, cursor: "one"}
	to := newSink()
	src.run(t, to)
	src.list, src.cursor = map[string]string{"/a": "2", "/b": "1", "/c": "2"}, "two"
	src.pages = map[string]string{"/a": "1", "/b": "1", "/c": "1"}
	if asked := src.run(t, to); !slices.Equal(asked, []string{"/a", "/c"}) {
		t.Fatalf("asked for %v", asked)
	}
	src.pages = src.list
	if asked := src.run(t, to); !slices.Equal(asked, []string{"/a", "/c"}) || to.titles["/a"] != "2" || to.titles["/c"] != "2" {
		t.Errorf("requested %v, stored %v", asked, to.titles)
	}
	if src.run(t, to); src.since != "two" || len(src.asked) > 0 {
		t.Errorf("the run resumes at %q and requests %v", src.since, src.asked)
	}
}

// If the versions of a site's pages never match those in its list, the list is read twice and then
// accepted. It is read twice again as soon as the version of another page differs.
func TestPagesAlwaysMismatch(t *testing.T) {
	src := &lagging{list: map[string]string{"/a": "1", "/b": "1"}, pages: map[string]string{"/a": "x", "/b": "y"}, cursor: "one"}
	to := newSink()
	for i, want := range []string{"", "", "one"} {
		src.run(t, to)
		if src.since != millrace.Cursor(want) {
			t.Fatalf("run %d resumes at %q, want %q", i, src.since, want)
		}
	}
	src.list, src.cursor = map[string]string{"/a": "1", "/b": "1", "/c": "1"}, "two"
	src.pages["/c"] = "1"
	src.run(t, to)
	if src.run(t, to); src.since != "two" {
		t.Errorf("a known difference prevents the cursor from advancing: the run resumes at %q", src.since)
	}
	src.list, src.cursor = map[string]string{"/a": "1", "/b": "1", "/c": "2"}, "three"
	src.run(t, to)
	if src.run(t, to); src.since != "two" {
		t.Errorf("a new difference is accepted at once: the run resumes at %q", src.since)
	}
}

// If a cache makes validators weak, the versions still match.
func TestWeakVersionIsNoMismatch(t *testing.T) {
	src := &lagging{list: map[string]string{"/a": `"1"`}, pages: map[string]string{"/a": `W/"1"`}, cursor: "one"}
	to := newSink()
	src.run(t, to)
	if src.run(t, to); src.since != "one" {
		t.Errorf("the run resumes at %q", src.since)
	}
}

// A checkpoint is stored even if the run fails after it.
func TestMarkBeforeAFailure(t *testing.T) {
	to := newSink()
	run(t, stream{{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "before"}}}, to, nil)
	src := failing{stream{
		{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{}},
		{Ref: millrace.Ref{URL: "/a", Version: "1"}},
		{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "after", Complete: true}},
	}}
	run(t, src, to, nil)
	if strings.Contains(string(to.cursor), "before") || strings.Contains(string(to.cursor), "after") {
		t.Errorf("the stored cursor is %s", to.cursor)
	}
}

// failing is a stream that returns an error for every page.
type failing struct{ stream }

func (failing) Page(context.Context, millrace.Ref) (*millrace.Page, error) {
	return nil, millrace.ErrForbidden
}
