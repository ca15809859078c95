package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// A fork is abandoned and started again if its parent loses rows before they are copied.
func TestForkLost(t *testing.T) {
	type world struct {
		site   *Site
		parent store.Publication
		open   func() *Publication // opens the fork
		now    time.Time
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
			if err := w.site.markDropped(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, steps := range []int{0, 1} { // 0 = nothing is copied; 1 = only the entries are copied
			t.Run(name, func(t *testing.T) {
				w := &world{now: time.Now()}
				s, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), &store.Options{Now: func() time.Time { return w.now }})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				opened, err := s.Site(t.Context(), "bench", benchBase)
				if err != nil {
					t.Fatal(err)
				}
				w.site = opened.(*Site)
				c := store.Config{Base: benchBase, Taggers: []millrace.Tagger{hashTagger()}}
				if w.parent, err = w.site.Publication(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				apply(t, w, "a", "first")
				publish(t, w.parent)
				c.Visibility.Exclude = []string{"/b"}
				w.open = func() *Publication {
					p, err := w.site.Publication(t.Context(), c)
					if err != nil {
						t.Fatal(err)
					}
					return p.(*Publication)
				}
				fork := w.open()
				r := &refresh{Publication: fork, site: &log{store: s, id: fork.log.site}, target: -1}
				for range steps {
					g, err := fork.row(readQuerier{t.Context(), s.read})
					if err == nil {
						err = r.copy(t.Context(), g)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				lose(t, w)
				if _, err := fork.Refresh(t.Context(), store.Lease{}, 0, nil); millrace.ErrorCode(err) != "log-dropped" {
					t.Errorf("refresh: %v", err)
				}
				again := w.open()
				if again.Name() == fork.Name() {
					t.Error("the fork that was lost is opened again")
				}
				publish(t, again)
			})
		}
	}
}
