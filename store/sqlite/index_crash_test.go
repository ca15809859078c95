package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
)

// indexChild makes the test binary a process that indexes and is killed; its
// value is the path of the store.
const indexChild = "MILLRACE_TEST_INDEX_CHILD"

var indexConfig = store.Config{Base: benchBase, Index: true}

// indexForever makes the index anew again and again, fits it, edits a page and
// publishes. It never ends by itself unless something fails.
func indexForever(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, nil)
	if err != nil {
		return err
	}
	site, err := s.Site(ctx, "crash", indexConfig)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for i := 0; ; i++ {
		for _, step := range []func() error{
			func() error { return site.Index(ctx, nil) },
			func() error { return site.Fit(ctx, nil) },
			func() error { return indexEdit(ctx, site) },
			func() error { return site.Compact(ctx, 0, 0) },
			func() error { // as if another version had made it
				return s.writer.do(ctx, func(t *tx) error { return t.exec("UPDATE generation SET format = 0 WHERE stage = ?", answering) })
			},
		} {
			if err := step(); err != nil && !errors.Is(err, millrace.ErrConflict) {
				return err
			}
		}
	}
}

// indexEdit turns one page of two over, and publishes.
func indexEdit(ctx context.Context, site *Site) error {
	v, err := site.Head(ctx)
	if err != nil {
		return err
	}
	seq := v.Site().Seq
	p := indexPage(int(seq%2), 1000+int(seq))
	if _, err := site.Apply(ctx, "crash", []millrace.Change{{Ref: millrace.Ref{URL: p.URL}, Page: p}}); err != nil {
		return err
	}
	var from uint64
	if old, _, err := site.Published(ctx); err == nil {
		from = old.Site().Seq
	}
	return site.Publish(ctx, from, seq+1, nil)
}

func indexPage(i, text int) *millrace.Page {
	rng := rand.New(rand.NewPCG(uint64(text), 1))
	p := prose(rng, fmt.Sprintf("p%03d", i), 1500)
	p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TextBlock, Text: fmt.Sprintf("text%d", text)})
	return p
}

// TestIndexCrash kills a process that indexes, fits and publishes, and looks
// each time whether what is published is found, and no less when the index has
// been brought up to date.
func TestIndexCrash(t *testing.T) {
	rounds := testkit.Size(3, 3, 36)
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "crash.db")
	s, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	site, err := s.Site(ctx, "crash", indexConfig)
	if err != nil {
		t.Fatal(err)
	}
	var batch []millrace.Change
	for i := range 200 {
		p := indexPage(i, i)
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
	}
	if _, err := site.Apply(ctx, "crash", batch); err != nil {
		t.Fatal(err)
	}
	if err := site.Publish(ctx, 0, 200, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 8))
	var builds int64
	for range rounds {
		killIndexing(t, path, time.Duration(rng.IntN(900))*time.Millisecond)
		builds = verifyIndex(t, path)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d kills, %d indexes", rounds, builds)
	if builds < 2 && rounds > 10 {
		t.Errorf("only %d indexes were begun in %d rounds", builds, rounds)
	}
}

func killIndexing(t *testing.T, path string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), indexChild+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		kill.Reset(after)
	}
	for lines.Scan() { // until it is killed
	}
	kill.Stop()
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Fatalf("the process failed: %s", stderr.String())
	}
}

// verifyIndex gives the number of the newest index.
func verifyIndex(t *testing.T, path string) int64 {
	t.Helper()
	ctx := t.Context()
	s, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(ctx, "crash", indexConfig)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := site.Published(ctx)
	if err != nil {
		t.Fatal(err)
	}
	everything := func(what string) []millrace.Hit {
		var hits []millrace.Hit
		for p, err := range v.Scan(ctx, millrace.Scan{Bodies: true}) {
			if err != nil {
				t.Fatal(err)
			}
			last := p.Blocks[len(p.Blocks)-1].Text
			found, err := v.(millrace.Searcher).Search(ctx, millrace.Query{Text: last})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if len(found.Hits) != 1 || found.Hits[0].URL != p.URL || !strings.Contains(found.Hits[0].Text, last) {
				t.Fatalf("%s: %q of %s is found as %+v", what, last, p.URL, found)
			}
			found.Hits[0].Relevance = 0 // what a model in the making adds
			hits = append(hits, found.Hits[0])
		}
		return hits
	}
	before := everything("after the kill")
	if err := site.Index(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, everything("brought up to date")); diff != "" {
		t.Errorf("after indexing (-before +after):\n%s", diff)
	}
	g, _, err := site.generations(readQuerier{ctx, s.read})
	if err != nil {
		t.Fatal(err)
	}
	var passages, length, wrong int64
	err = s.read.row(ctx, "SELECT count(*), sum(length) FROM passage WHERE id BETWEEN ? AND ? AND until = ?", []any{g.first(), g.last(), forever}, &passages, &length)
	if err != nil || passages != g.passages || length != g.length {
		t.Errorf("%d passages of %d words are counted as %d of %d (%v)", passages, length, g.passages, g.length, err)
	}
	// Each passage is in the words, and each term is counted right.
	err = s.writer.do(ctx, func(w *tx) error {
		if err := w.exec("INSERT INTO " + g.words() + "(" + g.words() + ") VALUES ('integrity-check')"); err != nil {
			return err
		}
		x := site.indexing()
		counts := make(map[string]int)
		err := w.rows(`SELECT p.id, p.sheet FROM passage p WHERE id BETWEEN ? AND ? AND until = ?`, []any{g.first(), g.last(), forever}, func(scan scanner) error {
			var id, sheet int64
			if err := scan(&id, &sheet); err != nil {
				return err
			}
			x.work = &work{tx: w, Site: site}
			text, err := x.text(id, sheet)
			x.entries.Entry(text)
			for term := range x.entries.Terms() {
				counts[term]++
			}
			return err
		})
		if err != nil {
			return err
		}
		err = w.rows("SELECT term, n FROM term WHERE generation = ?", []any{g.id}, func(scan scanner) error {
			var term string
			var n int
			err := scan(&term, &n)
			if counts[term] != n {
				wrong++
			}
			delete(counts, term)
			return err
		})
		wrong += int64(len(counts))
		return err
	})
	if err != nil || wrong > 0 {
		t.Errorf("%d terms are counted wrong (%v)", wrong, err)
	}
	return g.id
}
