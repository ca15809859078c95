package folder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// quiet is the time for which the watch waits for further changes.
const quiet = 300 * time.Millisecond

// watching starts a watch and returns a function that waits for its next call.
func watching(t *testing.T, f *Folder) (next func(what string), calls *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	called, ended := make(chan struct{}, 100), make(chan error, 1)
	calls = new(atomic.Int64)
	go func() {
		ended <- f.Watch(ctx, func() {
			calls.Add(1)
			called <- struct{}{}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch has ended with %v", err)
		}
	})
	next = func(what string) {
		t.Helper()
		select {
		case <-called:
		case <-time.After(5 * time.Minute):
			t.Fatal("not reported: " + what)
		}
	}
	next("the start")
	return next, calls
}

func TestWatch(t *testing.T) {
	f, dir := site(t, map[string]string{"index.html": html("Home", ""), "a/b/c.html": html("C", "")})
	next, calls := watching(t, f.Folder)
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }

	must(t, os.WriteFile(in("index.html"), []byte(html("New", "")), 0o644))
	next("a file written")
	must(t, os.WriteFile(in("a/b/.c.html.swp"), []byte("x"), 0o644))
	time.Sleep(2 * quiet)
	if n := calls.Load(); n != 2 {
		t.Errorf("a hidden file was reported: %d calls", n)
	}
	must(t, os.Rename(in("a/b/.c.html.swp"), in("a/b/c.html")))
	next("a file replaced")
	must(t, os.MkdirAll(in("new/deep"), 0o755))
	must(t, os.WriteFile(in("new/deep/a.html"), []byte(html("A", "")), 0o644))
	next("a directory made")
	must(t, os.WriteFile(in("new/deep/a.html"), []byte(html("B", "")), 0o644))
	next("a file in a directory that was made")
	must(t, os.RemoveAll(in("new")))
	next("a directory removed")
	before := calls.Load()
	for range 50 {
		must(t, os.WriteFile(in("index.html"), []byte(html("Again", "")), 0o644))
		time.Sleep(quiet / 50)
	}
	next("fifty writes")
	time.Sleep(2 * quiet)
	if n := calls.Load() - before; n > 2 {
		t.Errorf("fifty quick writes were %d calls", n)
	}
}

func TestWatchReplacedFolder(t *testing.T) {
	top := t.TempDir()
	write(t, top, map[string]string{"r1/index.html": html("One", ""), "r2/index.html": html("Two", "")})
	link := filepath.Join(top, "current")
	must(t, os.Symlink("r1", link))
	f := open(t, link, nil)
	next, _ := watching(t, f.Folder)
	must(t, os.Remove(link))
	must(t, os.Symlink("r2", link))
	next("another folder of the name")
	for range 2 { // the first call may only report that the old folder is gone
		if page(t, f, "/").Title == "Two" {
			break
		}
		next("the new folder being watched")
	}
	if got := page(t, f, "/").Title; got != "Two" {
		t.Errorf("title %q", got)
	}
}
