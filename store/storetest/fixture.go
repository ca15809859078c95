package storetest

import (
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// article returns a page with a title, a heading and a paragraph.
func article(path, text string) *millrace.Page {
	return &millrace.Page{
		URL: base + strings.TrimPrefix(path, "/"), Title: "Title of " + path,
		Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Level: 2, Text: "Heading"}, {Type: millrace.TextBlock, Text: text}},
		Detail: millrace.DetailBlocks,
		Known:  millrace.FieldTitle | millrace.FieldContent | millrace.FieldAccess,
	}
}

// put returns the change that stores a page.
func put(p *millrace.Page) millrace.Change {
	return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL, Version: p.Version}, Page: p}
}

// alias returns the change that maps the name ref to a page.
func alias(ref string, p *millrace.Page) millrace.Change {
	c := put(p)
	c.URL = ref
	return c
}

// gone returns the change that deletes a page.
func gone(path string) millrace.Change {
	return millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: base + strings.TrimPrefix(path, "/")}}
}

// apply applies changes that the store must accept.
func (f *fixture) apply(batch ...millrace.Change) millrace.Counts {
	f.Helper()
	return f.from(origin, batch...)
}

func (f *fixture) from(from string, batch ...millrace.Change) millrace.Counts {
	f.Helper()
	counts, err := f.site.Apply(f.Context(), from, batch)
	if err != nil {
		f.Fatalf("apply: %v", err)
	}
	return counts
}

// puts applies pages, each with its own text.
func (f *fixture) puts(paths ...string) {
	f.Helper()
	var batch []millrace.Change
	for _, p := range paths {
		batch = append(batch, put(article(p, "Text of "+p)))
	}
	f.apply(batch...)
}

func (f *fixture) page(v millrace.View, path string) *millrace.Page {
	f.Helper()
	p, err := v.Page(f.Context(), millrace.Ref{URL: path})
	if err != nil {
		f.Fatalf("page %s: %v", path, err)
	}
	return p
}

// paths returns the paths of the pages in a scan.
func (f *fixture) paths(v millrace.View, s millrace.Scan) []string {
	f.Helper()
	paths := []string{}
	for p, err := range v.Scan(f.Context(), s) {
		if err != nil {
			f.Fatalf("scan: %v", err)
		}
		paths = append(paths, relative(p.URL))
	}
	return paths
}

// storedRefs returns the stored refs of a source as path=version.
func (f *fixture) storedRefs(from string, urls ...string) []string {
	f.Helper()
	list := []string{}
	for r, err := range f.site.KnownRefs(f.Context(), from, urls...) {
		if err != nil {
			f.Fatalf("stored refs: %v", err)
		}
		list = append(list, relative(r.URL)+"="+r.Version)
	}
	return list
}

// relative shortens the URLs that the suite uses.
func relative(url string) string {
	for _, b := range []string{base, localBase} {
		if rest, ok := strings.CutPrefix(url, b); ok {
			return "/" + rest
		}
	}
	return url
}

// changes returns the changes of a view since a cursor. "+/a" is a new page, "~/a" a changed
// one, "-/a" a deleted one, and "±/a" a new and deleted one. It also returns the next cursor.
func (f *fixture) changes(v millrace.View, since millrace.Cursor) (list []string, next millrace.Cursor) {
	f.Helper()
	list = []string{}
	for c, err := range v.Changes(f.Context(), since) {
		if err != nil {
			f.Fatalf("changes since %q: %v", since, err)
		}
		if next != "" {
			f.Fatalf("a change after the checkpoint: %+v", c)
		}
		if c.Kind == millrace.KindCheckpoint {
			next = c.Checkpoint.Cursor
			if c.Checkpoint.Complete != (since == "") {
				f.Errorf("since %q: Checkpoint.Complete = %v", since, c.Checkpoint.Complete)
			}
			continue
		}
		sign := "~"
		switch {
		case c.Kind == millrace.Delete && c.New:
			sign = "±"
		case c.Kind == millrace.Delete:
			sign = "-"
		case c.New:
			sign = "+"
		}
		list = append(list, sign+relative(c.URL))
	}
	if next == "" {
		f.Fatalf("changes since %q end without a checkpoint", since)
	}
	return list, next
}

// cursor returns the cursor of a view.
func (f *fixture) cursor(v millrace.View) millrace.Cursor {
	f.Helper()
	_, c := f.changes(v, "")
	want(f, "cursor", c, v.Site().At(v.Site().Seq))
	return c
}

// refusal returns the error of a view for a cursor.
func (f *fixture) refusal(v millrace.View, since millrace.Cursor) error {
	for _, err := range v.Changes(f.Context(), since) {
		return err
	}
	return nil
}

// want fails the test if got and want differ.
func want[T any](f *fixture, what string, got, want T) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// set returns its arguments as a slice that is not nil.
func set(s ...string) []string { return append([]string{}, s...) }
