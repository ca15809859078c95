package mirror_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

func TestUpdate(t *testing.T) {
	src := &site{pages: map[string]string{"/a": "1", "/b": "1", "/c": "1", "/d": "1"}, broken: map[string]error{}}
	to := newSink()
	if _, err := mirror.Sync(t.Context(), "x", src, to, nil); err != nil {
		t.Fatal(err)
	}
	cursor := to.cursor
	src.pages["/a"], src.pages["/new"], src.pages["/other"] = "2", "1", "1"
	delete(src.pages, "/b")
	src.broken["/d"] = millrace.ErrUnavailable
	r, err := mirror.Update(t.Context(), "x", src, to, []string{"/a", "/b", "/c", "/d", "/new", "/a", "/never"}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"/a": "2", "/c": "1", "/d": "1", "/new": "1"}
	if diff := cmp.Diff(want, to.titles); diff != "" {
		t.Error(diff)
	}
	if r.Added != 1 || r.Updated != 1 || r.Deleted != 1 || r.Unchanged != 1 || r.SkippedN != 2 || r.Unavailable != 1 || r.Requested != 6 {
		t.Errorf("%+v", r)
	}
	if to.cursor != cursor {
		t.Error("the cursor advanced past unread changes")
	}
	r, err = mirror.Update(t.Context(), "x", src, to, []string{"/a", "/never"}, true, nil)
	if err != nil || r.Deleted != 1 || r.Requested != 0 || to.titles["/a"] != "" {
		t.Errorf("%+v %v %v", r, err, to.titles)
	}
	delete(src.broken, "/d")
	if r, err := mirror.Sync(t.Context(), "x", src, to, nil); err != nil || r.Added != 2 {
		t.Errorf("the next run: %+v %v", r, err)
	}
	if diff := cmp.Diff(src.pages, to.titles); diff != "" {
		t.Error(diff)
	}
}

func TestUpdateMany(t *testing.T) {
	src, to := &site{pages: map[string]string{}}, newSink()
	var urls []string
	for i := range 100 {
		u := fmt.Sprintf("/%d", i)
		src.pages[u] = "1"
		urls = append(urls, u)
	}
	r, err := mirror.Update(t.Context(), "x", src, to, urls, false, nil)
	if err != nil || r.Added != 100 || !maps.Equal(to.titles, src.pages) {
		t.Errorf("%+v %v", r, err)
	}
	// If the disk is full, the update ends. The report contains the changes that were applied.
	to = newSink()
	to.fail, to.failAt = millrace.ErrUnavailable, 3
	r, err = mirror.Update(t.Context(), "x", src, to, urls, false, nil)
	if !errors.Is(err, millrace.ErrUnavailable) || r.Added != len(to.titles) || r.Added == 0 || r.Added == 100 {
		t.Errorf("%+v %v, %d pages", r, err, len(to.titles))
	}
}
