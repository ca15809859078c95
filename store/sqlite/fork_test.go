package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// A fork is abandoned and started again if its parent loses rows before they are copied.
func TestForkLost(t *testing.T) {
	type world struct {
		site   store.Site
		parent store.Publication
		open   func() store.Publication // opens the fork
		now    time.Time
		store  *Store
		asked  func() // called when the store reads its clock
	}
	apply := func(t *testing.T, w *world, path, text string) {
		t.Helper()
		p := &millrace.Page{URL: benchBase + path, Title: text, Known: millrace.FieldTitle}
		if _, err := w.site.Apply(t.Context(), "test", []millrace.Change{{Ref: millrace.Ref{URL: p.URL}, Page: p}}); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(t *testing.T, p store.Publication) {
		t.Helper()
		if _, err := p.Refresh(t.Context(), store.Lease{}, 0, nil); err != nil {
			t.Fatal(err)
		}
		v, err := p.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, last, _ := p.Published(t.Context())
		if _, err := p.Publish(t.Context(), store.Lease{}, last.Number, v.Site().Seq, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for name, lose := range map[string]func(t *testing.T, w *world){
		"compacted": func(t *testing.T, w *world) {
			for range 2 {
				apply(t, w, "a", w.now.String())
				publish(t, w.parent)
				w.now = w.now.Add(time.Hour)
			}
			if err := w.site.Compact(t.Context(), time.Minute, time.Minute); err != nil {
				t.Fatal(err)
			}
		},
		"being dropped": func(t *testing.T, w *world) {
			w.now = w.now.Add(401 * 24 * time.Hour)
			w.open() // the fork is in use
			err := w.store.db.writer.do(t.Context(), func(t *tx) error { return t.Exec("UPDATE publication SET stage = 4 WHERE parent = 0") })
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, steps := range []int{0, 1} { // 0 = nothing is copied; 1 = only the entries are copied
			t.Run(name, func(t *testing.T) {
				w := &world{now: time.Now(), asked: func() {}}
				s, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), &store.Options{Now: func() time.Time { w.asked(); return w.now }})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				opened, err := s.Site(t.Context(), "bench", benchBase)
				if err != nil {
					t.Fatal(err)
				}
				w.site, w.store = opened, s
				c := store.Config{Base: benchBase, Taggers: []millrace.Tagger{hashTagger()}}
				if w.parent, err = w.site.Publication(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				apply(t, w, "a", "first")
				publish(t, w.parent)
				c.Visibility.Exclude = []string{"/b"}
				w.open = func() store.Publication {
					p, err := w.site.Publication(t.Context(), c)
					if err != nil {
						t.Fatal(err)
					}
					return p
				}
				fork := w.open()
				if steps > 0 {
					ctx, cancel := context.WithCancel(t.Context())
					asks := 0
					w.asked = func() { // called first twice to record the use of the fork, then in each transaction
						if asks++; asks == 3+steps {
							cancel()
						}
					}
					var entries int
					_, err := fork.Refresh(ctx, store.Lease{}, 0, nil)
					w.asked = func() {}
					if err := s.db.read.row(t.Context(), "SELECT count(*) FROM entry WHERE log = (SELECT max(id) FROM log)", nil, &entries); err != nil || entries != steps {
						t.Fatalf("%d entries are copied, %v", entries, err)
					}
					if !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
				}
				lose(t, w)
				if _, err := fork.Refresh(t.Context(), store.Lease{}, 0, nil); millrace.ErrorCode(err) != "log-dropped" {
					t.Errorf("refresh: %v", err)
				}
				again := w.open()
				if again.Name() == fork.Name() {
					t.Error("the abandoned fork was opened again")
				}
				publish(t, again)
			})
		}
	}
}
