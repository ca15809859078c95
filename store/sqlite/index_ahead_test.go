package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// indexOf gives all that an index has of its passages.
func indexOf(t *testing.T, s *Site) (rows []string) {
	t.Helper()
	q := readQuerier{t.Context(), s.store.read}
	for _, query := range []string{
		"SELECT p.id || ' ' || s.url || ' ' || p.ord || ' ' || p.chunk || ' ' || p.length || ' ' || p.print || ' ' || hex(p.profile) FROM passage p, sheet s ON s.id = p.sheet ORDER BY p.id",
		"SELECT id || ' ' || data FROM passage_text ORDER BY id",
		"SELECT term || ' ' || n FROM term ORDER BY term",
	} {
		err := q.rows(query, nil, func(scan scanner) error {
			var row string
			err := scan(&row)
			rows = append(rows, row)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// An index is the same however many processors have made it.
func TestIndexAhead(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const pages = 250 // more than are read at once
	var first []string
	for i, processors := range []int{1, 4} {
		runtime.GOMAXPROCS(processors)
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		site, err := s.Site(t.Context(), "one", indexConfig)
		if err != nil {
			t.Fatal(err)
		}
		var batch []millrace.Change
		for i := range pages {
			p := indexPage(i, i)
			if i == 10 { // larger than all that may wait
				p = indexPage(i, i)
				p.Blocks[0].Text = strings.Repeat("A sentence of the long page. ", aheadBytes/20)
			}
			batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
		}
		if _, err := site.Apply(t.Context(), "one", batch); err != nil {
			t.Fatal(err)
		}
		// Whoever stops in the midst of it goes on later.
		ctx, cancel := context.WithCancel(t.Context())
		if err := site.Index(ctx, func(done, _ int) {
			if done > pages/4 {
				cancel()
			}
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		if err := site.Index(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		got := indexOf(t, site)
		if i == 0 {
			first = got
		} else if d := cmp.Diff(first, got); d != "" {
			t.Errorf("with %d processors: %s", processors, d)
		}
		if n := strings.Count(fmt.Sprint(first), "p010"); n < 10 {
			t.Errorf("%d passages of the long page", n)
		}
	}
}

// A page that cannot be read is named, and nothing waits for it.
func TestIndexDamaged(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(t.Context(), "one", indexConfig)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		p := indexPage(i, i)
		if _, err := site.Apply(t.Context(), "one", []millrace.Change{{Ref: millrace.Ref{URL: p.URL}, Page: p}}); err != nil {
			t.Fatal(err)
		}
	}
	damage := func(data string) {
		t.Helper()
		err := s.writer.do(t.Context(), func(x *tx) error {
			return x.exec("UPDATE body SET data = ? WHERE id = (SELECT body FROM raw WHERE url = '/p020')", []byte(data))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	damage(`[{"type":"text","te`)
	if err := site.Index(t.Context(), nil); err == nil {
		t.Errorf("a damaged page: %v", err)
	}
	damage(`[{"type":"text","text":"mended"}]`)
	if err := site.Index(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// What has been made ahead is kept no longer than it is needed, be it that
// nobody takes it from the jobs, or that another process has taken it in.
func TestIndexAheadForgets(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nobody takes a job
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(t.Context(), "one", indexConfig)
	if err != nil {
		t.Fatal(err)
	}
	var batch []millrace.Change
	for i := range 150 { // of which a transaction takes fewer
		p := prose(rand.New(rand.NewPCG(uint64(i), 1)), fmt.Sprintf("p%03d", i), 10_000)
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
	}
	if _, err := site.Apply(t.Context(), "one", batch); err != nil {
		t.Fatal(err)
	}
	one, other := site.indexing(), site.indexing()
	step := func(x *indexing) {
		t.Helper()
		err := site.change(t.Context(), func(w *work) error {
			x.begin(w)
			_, _, _, err := x.step(t.Context(), w.seq)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	step(one)
	left := len(one.ahead.waiting)
	if left == 0 || one.ahead.bytes == 0 {
		t.Fatal("nothing is read ahead")
	}
	made := 0
	for range len(one.ahead.jobs) {
		page := <-one.ahead.jobs
		if page.taken.Load() {
			made++
			if page.list != nil || page.page != nil {
				t.Errorf("a page that is in the index is kept: %d passages", len(page.list))
			}
		}
	}
	if made == 0 {
		t.Error("no page was made")
	}
	for done := 0; done < len(batch); {
		step(other)
		_, g, err := site.generations(readQuerier{t.Context(), s.read})
		if err != nil {
			t.Fatal(err)
		}
		done = g.done
	}
	step(one)
	if len(one.ahead.waiting) > 0 || one.ahead.bytes != 0 {
		t.Errorf("%d of %d pages that another has taken in wait still, of %d bytes", len(one.ahead.waiting), left, one.ahead.bytes)
	}
	site.indexed(one)
	site.indexed(other)
}
