package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// What was mirrored keeps its addresses for whoever reads the store, wherever
// it has been published since; a folder has those that it was published at.
func TestKeptBase(t *testing.T) {
	const mill, copied = "https://mill.example/", "https://copy.example/"
	ctx := t.Context()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, want := range map[string]string{mill: mill, "folder /mill": copied} {
		site, err := s.Site(ctx, name, store.Config{Base: copied})
		if err != nil {
			t.Fatal(err)
		}
		page := &millrace.Page{URL: "/gate/", Title: "Gate", Known: millrace.FieldTitle}
		if _, err := site.Apply(ctx, "me", []millrace.Change{{Ref: millrace.Ref{URL: "/gate/"}, Page: page}}); err != nil {
			t.Fatal(err)
		}
		v, err := site.Head(ctx)
		if err == nil {
			err = site.Publish(ctx, 0, v.Site().Seq, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept, err := s.Kept(ctx, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v, err = kept.Head(ctx); err != nil {
			t.Fatal(err)
		}
		p, err := v.Page(ctx, millrace.Ref{URL: "/gate/"})
		if err != nil || p.URL != want+"gate/" || v.Site().Base != want || v.Site().Docs != want {
			t.Errorf("%s: %+v, %+v: %v", name, p, v.Site(), err)
		}
	}
}
