package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// CrashLocation is the name of an environment variable for [Crash]. If it is set, TestMain of a
// test binary calls [WriteForever] with the store at the location in its value.
const CrashLocation = "MILLRACE_TEST_CRASH_LOCATION"

// WriteForever applies batches to a store under a lease, and prints the number of each
// acknowledged batch. It compacts and publishes in between. It returns only if an operation
// fails.
func WriteForever(ctx context.Context, s store.Store) error {
	site, err := s.Site(ctx, siteName, base)
	if err != nil {
		return err
	}
	pub, err := site.Publication(ctx, crashConfig())
	if err != nil {
		return err
	}
	c, err := site.Cursor(ctx, origin)
	if err != nil {
		return err
	}
	k, _ := strconv.Atoi(string(c))
	for {
		k++
		lease, err := s.Leases().Acquire(ctx, "crash", "crash", time.Hour)
		if err == nil {
			_, err = site.Fenced(lease).Apply(ctx, origin, crashBatch(k))
		}
		var old []byte
		if err == nil {
			old, err = s.State().Value(ctx, siteName, "batch")
		}
		if err == nil {
			err = s.State().Swap(ctx, siteName, "batch", old, fmt.Append(nil, k))
		}
		if err != nil {
			return fmt.Errorf("batch %d: %w", k, err)
		}
		fmt.Println(k)
		if k%6 == 0 {
			err = site.Compact(ctx, 0, 0)
		}
		if k%4 == 0 && err == nil {
			err = publishUnder(ctx, pub, lease)
		}
		if err != nil {
			return err
		}
	}
}

func publishUnder(ctx context.Context, p store.Publication, l store.Lease) error {
	if _, err := p.Refresh(ctx, l, 0, nil); err != nil {
		return err
	}
	v, err := p.Head(ctx)
	if err != nil {
		return err
	}
	_, last, _ := p.Published(ctx)
	_, err = p.Publish(ctx, l, last.Number, v.Site().Seq, manifest(p, v))
	return err
}

func crashConfig() store.Config {
	return store.Config{Base: base, Taggers: []millrace.Tagger{slashes()}}
}

// crashBatch returns batch k: ten pages of a group with the text k, and the deletion of a
// page of another group.
func crashBatch(k int) (batch []millrace.Change) {
	for i := range 10 {
		p := withOriginal(article(fmt.Sprintf("/g%d/%d", k%7, i), strings.Repeat(fmt.Sprint(k, " "), 300)), fmt.Sprint(k))
		p.Version = strconv.Itoa(k)
		batch = append(batch, put(p))
	}
	return append(batch, gone(fmt.Sprintf("/g%d/%d", (k+3)%7, k%10)),
		millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: millrace.Cursor(strconv.Itoa(k))}})
}

// Crash repeatedly kills processes that write to a store. After each kill, it checks that the
// acknowledged batches are complete and that any other batch is complete or absent. After the last
// kill, it also checks that the lease of the killed process expires. check performs further checks
// of the engine; it may be nil.
func Crash(t *testing.T, e Engine, rounds int, check func(s store.Store)) {
	f := &fixture{T: t, engine: e, name: siteName, config: crashConfig()}
	f.setPlace()
	rng := rand.New(rand.NewPCG(7, 11))
	pages := make(map[string]string) // path to version
	done := 0
	for round := range rounds {
		acked := Kill(t, CrashLocation, f.location, time.Duration(rng.IntN(25_000))*time.Microsecond)
		f.store, f.now = nil, time.Now().UTC().Truncate(time.Millisecond)
		f.open()
		done = f.verifyCrash(pages, done, acked)
		if check != nil {
			check(f.store)
		}
		if round == rounds-1 {
			f.verifyLease()
		}
		if err := f.store.Close(); err != nil || t.Failed() {
			t.Fatalf("round %d: close: %v", round, err)
		}
	}
	t.Logf("%d kills, %d batches", rounds, done)
	if done < rounds/4 {
		t.Errorf("only %d batches in %d rounds: the processes were killed too early", done, rounds)
	}
}

// verifyCrash compares the store with pages, to which it first applies the batches from done to the
// last batch in the store. It returns the number of that batch.
func (f *fixture) verifyCrash(pages map[string]string, done, acked int) int {
	f.Helper()
	c, err := f.site.Cursor(f.Context(), origin)
	if err != nil {
		f.Fatalf("cursor: %v", err)
	}
	now, _ := strconv.Atoi(string(c))
	state, _ := strconv.Atoi(f.value(siteName, "batch"))
	if now < acked || state < acked || state > now {
		f.Errorf("batch %d was acknowledged; the store is at %d, its state at %d", acked, now, state)
	}
	for ; done < now; done++ {
		for _, c := range crashBatch(done + 1) {
			switch c.Kind {
			case millrace.Put:
				pages[c.URL] = c.Version
			case millrace.Delete:
				delete(pages, c.URL)
			}
		}
	}
	got, stored := make(map[string]string), make(map[string]string)
	for p, err := range f.siteHead().Scan(f.Context(), millrace.Scan{WithBlocks: true}) {
		if err != nil {
			f.Fatalf("scan: %v", err)
		}
		got[p.URL], _, _ = strings.Cut(p.Blocks[1].Text, " ")
	}
	for ref, err := range f.site.KnownRefs(f.Context(), origin) {
		if err != nil {
			f.Fatalf("held: %v", err)
		}
		stored[ref.URL] = ref.Version
		want(f, "original of "+ref.URL, f.original(origin, ref.URL), ref.Version)
	}
	want(f, fmt.Sprint("after batch ", now), got, pages)
	want(f, fmt.Sprint("held after batch ", now), stored, pages)
	if _, _, err := f.pub.Published(f.Context()); !errors.Is(err, millrace.ErrNotFound) {
		v, _ := f.published(f.pub)
		f.paths(v, millrace.Scan{WithBlocks: true})
	}
	f.agree(fmt.Sprint("after batch ", now), f.head(), f.config)
	return now
}

// verifyLease checks the lease of a killed process.
func (f *fixture) verifyLease() {
	f.Helper()
	stale := f.taken("crash", "crash")
	f.pass(2 * time.Hour)
	want(f, "rises", f.acquire("crash", "next").Fence > stale.Fence, true)
	if _, err := f.site.Fenced(stale).Apply(f.Context(), origin, crashBatch(1)); !errors.Is(err, millrace.ErrConflict) {
		f.Errorf("apply under the lease of a process that was killed: %v", err)
	}
}

// Kill starts the test binary with an environment variable. It kills the process at the given time
// after the first number that the process prints, and returns the last number.
func Kill(t testing.TB, variable, value string, after time.Duration) (last int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(cmd.Environ(), variable+"="+value)
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
	kill := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	for first := true; lines.Scan(); first = false {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Errorf("a process prints %q", lines.Text())
		}
		if first {
			kill.Reset(after)
		}
	}
	kill.Stop()
	_ = cmd.Wait() // the process was killed
	if last == 0 || stderr.Len() > 0 {
		t.Fatalf("the process failed: %s", stderr.String())
	}
	return last
}
