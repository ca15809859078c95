package index

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// crashChild makes the test binary a process that indexes until it is killed. Its value is the
// folder of the store.
const crashChild = "MILLRACE_TEST_INDEX_CHILD"

// indexForever edits pages and updates, fits and rebuilds the index. It returns only after an
// error.
func indexForever(dir string) error {
	ctx := context.Background()
	f := &fixture{dir: dir}
	s, err := stores.Open(ctx, f.file(), nil)
	if err != nil {
		return err
	}
	site, err := s.Site(ctx, base, base)
	if err != nil {
		return err
	}
	pub, err := site.Publication(ctx, store.Config{Base: base})
	if err != nil {
		return err
	}
	x, err := Open(ctx, File(f.file(), base), nil)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for i := 0; ; i++ {
		p := prose(fmt.Sprintf("/p%03d", i%2), 1000+int(time.Now().UnixMilli()%100_000), 300)
		if _, err := site.Apply(ctx, origin, []millrace.Change{put(p)}); err != nil {
			return err
		}
		if _, err := pub.Refresh(ctx, store.Lease{}, 0, nil); err != nil {
			return err
		}
		v, err := pub.Head(ctx)
		if err == nil {
			err = x.Update(ctx, v, nil)
		}
		if err == nil {
			err = x.Fit(ctx, nil)
		}
		switch i % 6 {
		case 2: // as if the view had rejected the cursor
			err = errors.Join(err, x.change(ctx, func(w *work) error { w.epoch = "another"; return nil }))
		case 5:
			err = errors.Join(err, x.rebuild(ctx))
		}
		if err != nil {
			return err
		}
	}
}

// TestCrash kills a process that updates and fits an index. Each time it verifies the index,
// before and after the next update.
func TestCrash(t *testing.T) {
	rounds := testkit.Size(3, 3, 36)
	dir := t.TempDir()
	f := fixtureIn(t, dir, Options{})
	var batch []millrace.Change
	for i := range 200 {
		batch = append(batch, put(prose(fmt.Sprintf("/p%03d", i), i, 300)))
	}
	f.apply(batch...)
	rng := rand.New(rand.NewPCG(5, 8))
	for range rounds {
		killIndexing(t, dir, time.Duration(rng.IntN(900))*time.Millisecond)
		verify(t, dir)
		if t.Failed() {
			t.FailNow()
		}
	}
}

func killIndexing(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashChild+"="+dir)
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
	for lines.Scan() { // until the process is killed
	}
	kill.Stop()
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Fatalf("the process failed: %s", stderr.String())
	}
}

// verify searches for every page, before and after an update. It compares the counts of the
// index with its rows.
func verify(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	f := fixtureIn(t, dir, Options{})
	v := f.head()
	everything := func(what string, all bool) []millrace.Hit {
		var hits []millrace.Hit
		for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
			if err != nil {
				t.Fatal(err)
			}
			last := p.Blocks[len(p.Blocks)-1].Text
			found, err := f.index.Search(ctx, v, millrace.Query{Text: last})
			if errors.Is(err, millrace.ErrUnavailable) && !all {
				return nil
			} else if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if len(found.Hits) == 0 && !all {
				continue
			}
			if len(found.Hits) != 1 || found.Hits[0].URL != p.URL || !strings.Contains(found.Hits[0].Text, last) {
				t.Fatalf("%s: %q of %s is found as %+v", what, last, p.URL, found)
			}
			found.Hits[0].Relevance = 0 // depends on whether a model is in use
			hits = append(hits, found.Hits[0])
		}
		return hits
	}
	before := everything("after the kill", false)
	f.update()
	after := everything("updated", true)
	if len(before) > 0 {
		t.Logf("%d pages are found after the kill", len(before))
	}
	found := make(map[string]millrace.Hit)
	for _, h := range after {
		found[h.URL] = h
	}
	for _, h := range before {
		if diff := cmp.Diff(found[h.URL], h); diff != "" {
			t.Errorf("before the update (-after +before):\n%s", diff)
		}
	}
	s := f.state()
	err := f.index.change(ctx, func(w *work) error {
		if _, err := w.exec("INSERT INTO words (words) VALUES ('integrity-check')"); err != nil {
			return err
		}
		var passages, length, orphans int64
		err := w.row(`SELECT count(*), sum(length), (SELECT count(*) FROM texts WHERE id NOT IN (SELECT id FROM page))
			+ (SELECT count(*) FROM vector WHERE id & 4294967295 NOT IN (SELECT id FROM passage)) FROM passage`, nil, &passages, &length, &orphans)
		if err != nil {
			return err
		}
		if passages != s.passages || length != s.length || orphans != 0 {
			t.Errorf("%d passages of %d words are counted as %d of %d, %d rows belong to no passage", passages, length, s.passages, s.length, orphans)
		}
		counts := make(map[string]int)
		x := search.NewIndexer()
		for after := int64(0); ; {
			list, err := f.index.textsAfter(w.conn, after)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				break
			}
			for _, text := range list {
				x.Entry(text.Text)
				for term := range x.Terms() {
					counts[term]++
				}
				after = text.id
			}
		}
		return errors.Join(w.rows("SELECT term, n FROM term", nil, func(scan scanner) error {
			var term string
			var n int
			err := scan(&term, &n)
			if counts[term] -= n; counts[term] == 0 {
				delete(counts, term)
			}
			return err
		}), func() error {
			if len(counts) > 0 {
				t.Errorf("the counts of terms are wrong: %v", counts)
			}
			return nil
		}())
	})
	if err != nil {
		t.Error(err)
	}
	f.close()
	f.open() // for the cleanup
}
