package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
)

// crashChild is the variable that makes the test binary a process to be
// killed; its value is the path of the store.
const crashChild = "MILLRACE_TEST_CRASH_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashChild); path != "" {
		if err := crashing(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if path := os.Getenv(usageChild); path != "" {
		if err := recordForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if path := os.Getenv(indexChild); path != "" {
		if err := indexForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	testkit.Main(m)
}

var crashConfig = store.Config{Base: benchBase, Taggers: []millrace.Tagger{hashTagger()}}

// crashing applies batch after batch, prints the number of each that is
// acknowledged, and compacts and publishes in between. It never ends by itself
// unless something fails.
func crashing(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, nil)
	if err != nil {
		return err
	}
	site, err := s.Site(ctx, "crash", crashConfig)
	if err != nil {
		return err
	}
	c, err := site.Cursor(ctx, "crash")
	if err != nil {
		return err
	}
	k, _ := strconv.Atoi(string(c))
	for {
		k++
		if _, err := site.Apply(ctx, "crash", crashBatch(k)); err != nil {
			return fmt.Errorf("batch %d: %w", k, err)
		}
		fmt.Println(k)
		if k%6 == 0 {
			if err := site.Compact(ctx, 0, 0); err != nil {
				return err
			}
		}
		if k%4 == 0 {
			v, err := site.Head(ctx)
			if err != nil {
				return err
			}
			var from uint64
			if old, _, err := site.Published(ctx); err == nil {
				from = old.Site().Seq
			}
			if err := site.Publish(ctx, from, v.Site().Seq, fmt.Append(nil, v.Site().Seq)); err != nil {
				return err
			}
		}
	}
}

// crashBatch is batch k: ten pages of one group all say k, and one page of
// another group goes.
func crashBatch(k int) (batch []millrace.Change) {
	for i := range 10 {
		p := &millrace.Page{
			URL: fmt.Sprintf("%sg%d/%d", benchBase, k%7, i), Title: strconv.Itoa(k), Version: strconv.Itoa(k),
			Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: strings.Repeat(fmt.Sprint(k, " "), 300)}},
			Known:  millrace.FieldTitle | millrace.FieldContent, Detail: millrace.DetailBlocks,
			Original: fmt.Appendf(nil, "<p>%d</p>", k),
		}
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
	}
	return append(batch,
		millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: fmt.Sprintf("%sg%d/%d", benchBase, (k+3)%7, k%10)}},
		millrace.Change{Kind: millrace.Mark, Mark: &millrace.Milestone{Cursor: millrace.Cursor(strconv.Itoa(k))}})
}

// crashModel applies batch k to what the pages say.
func crashModel(pages map[string]string, k int) {
	for _, c := range crashBatch(k) {
		switch c.Kind {
		case millrace.Put:
			pages[c.URL] = c.Page.Text()
		case millrace.Delete:
			delete(pages, c.URL)
		}
	}
}

// TestCrash kills a process that writes, a hundred times, and looks each time
// whether what it acknowledged is there and what it did not is there wholly or
// not at all.
func TestCrash(t *testing.T) {
	rounds := testkit.Size(10, 20, 300)
	path := filepath.Join(t.TempDir(), "crash.db")
	rng := rand.New(rand.NewPCG(7, 11))
	model := make(map[string]string)
	done, inFlight := 0, 0
	for round := range rounds {
		acked := crashOnce(t, crashChild, path, time.Duration(rng.IntN(25_000))*time.Microsecond)
		before := done
		done = verifyCrash(t, path, model, done)
		if t.Failed() {
			t.FailNow()
		}
		if acked > done {
			t.Fatalf("round %d: batch %d was acknowledged, the store is at %d", round, acked, done)
		}
		if done > max(acked, before) {
			inFlight++ // committed, killed before it could say so
		}
	}
	t.Logf("%d kills, %d batches, %d of them committed and not acknowledged", rounds, done, inFlight)
	if done < rounds/4 {
		t.Errorf("only %d batches in %d rounds: the processes were killed too early", done, rounds)
	}
}

// crashOnce starts a process, kills it some time after its first batch and
// gives the last batch that it acknowledged.
func crashOnce(t *testing.T, child, path string, after time.Duration) (acked int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	for first := true; lines.Scan(); first = false {
		if acked, err = strconv.Atoi(lines.Text()); err != nil {
			t.Errorf("a process says %q", lines.Text())
		}
		if first {
			kill.Reset(after)
		}
	}
	kill.Stop()
	_ = cmd.Wait() // it was killed
	if acked == 0 || stderr.Len() > 0 {
		t.Fatalf("the process failed: %s", stderr.String())
	}
	return acked
}

// verifyCrash compares a store with the model, which it brings from batch done
// to the one that the store is at.
func verifyCrash(t *testing.T, path string, model map[string]string, done int) int {
	t.Helper()
	ctx := t.Context()
	s, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var check string
	if err := s.read.row(ctx, "PRAGMA integrity_check", nil, &check); err != nil || check != "ok" {
		t.Fatalf("integrity: %s, %v", check, err)
	}
	site, err := s.Site(ctx, "crash", crashConfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := site.Cursor(ctx, "crash")
	if err != nil {
		t.Fatal(err)
	}
	now, _ := strconv.Atoi(string(c))
	for ; done < now; done++ {
		crashModel(model, done+1)
	}
	v, err := site.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for p, err := range v.Scan(ctx, millrace.Scan{Bodies: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got[p.URL] = p.Text()
		tag, err := v.Tag(ctx, "hash-01", p.URL)
		want, _ := hashTagger().Tag(v.Site(), p)
		if err != nil || tag.Value != want || !tag.Modified.Equal(p.Modified) {
			t.Errorf("tag of %s: %+v, %v", p.URL, tag, err)
		}
	}
	if !maps.Equal(got, model) {
		t.Errorf("after batch %d (-want +got):\n%s", done, cmp.Diff(model, got))
	}
	if v.Site().Pages != len(model) {
		t.Errorf("after batch %d: %d pages are counted, %d are there", done, v.Site().Pages, len(model))
	}
	held := 0
	for ref, err := range site.Held(ctx, "crash") {
		if err != nil {
			t.Fatal(err)
		}
		held++
		if original, err := site.Original(ctx, "crash", ref.URL); err != nil || string(original) != "<p>"+ref.Version+"</p>" {
			t.Errorf("version %s of %s was made of %q (%v)", ref.Version, ref.URL, original, err)
		}
	}
	var originals int
	if err := s.read.row(ctx, "SELECT count(*) FROM original", nil, &originals); err != nil || originals != held {
		t.Errorf("after batch %d: %d URLs are held, with %d originals (%v)", done, held, originals, err)
	}
	if held != len(model) {
		t.Errorf("after batch %d: %d URLs are held, %d pages are there", done, held, len(model))
	}
	if p, manifest, err := site.Published(ctx); err == nil && string(manifest) != fmt.Sprint(p.Site().Seq) {
		t.Errorf("the manifest %s is published with number %d", manifest, p.Site().Seq)
	}
	return now
}
