package mirror_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// mill is a source whose stream contains its two pages.
type mill struct{}

func (mill) Changes(context.Context, millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for _, url := range []string{"/gate/", "/wheel/"} {
			page := &millrace.Page{URL: url, Title: url[1 : len(url)-1], Known: millrace.FieldTitle}
			if !yield(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: url, Version: "1"}, Page: page}, nil) {
				return
			}
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Complete: true}}, nil)
	}
}

func (mill) Page(_ context.Context, have millrace.Ref) (*millrace.Page, error) {
	return nil, fmt.Errorf("page %s: %w", have.URL, millrace.ErrNotFound)
}

// titles is a sink that stores the titles of pages.
type titles map[string]string

func (s titles) Apply(_ context.Context, _ string, batch []millrace.Change) (millrace.Counts, error) {
	var t millrace.Counts
	for _, c := range batch {
		switch {
		case c.Kind == millrace.Put && c.Page != nil:
			s[c.URL] = c.Page.Title
			t.Added++
		case c.Kind == millrace.Delete:
			delete(s, c.URL)
			t.Deleted++
		}
	}
	return t, nil
}

// A sink can be as small as a map. A sink that also implements [millrace.SyncState] receives
// only changes and deletions.
func ExampleSync() {
	sink := titles{}
	report, err := mirror.Sync(context.Background(), "https://mill.example/ list", mill{}, sink, nil)
	fmt.Println(sink, report.Added, err)
	// Output: map[/gate/:gate /wheel/:wheel] 2 <nil>
}

// Pages is a sink for programs without a store. The next run fetches only changes.
func ExamplePages() {
	var pages mirror.Pages
	report, err := mirror.Sync(context.Background(), "https://mill.example/ list", mill{}, &pages, nil)
	for url, page := range pages.All() {
		fmt.Println(url, page.Title)
	}
	fmt.Println(report.Added, err)
	// Output:
	// /gate/ gate
	// /wheel/ wheel
	// 2 <nil>
}
