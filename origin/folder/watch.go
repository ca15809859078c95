package folder

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	quiet     = 300 * time.Millisecond // without an event: what was going on is over
	longest   = 2 * time.Second        // that an event waits for quiet
	look      = 2 * time.Second        // between looks whether the folder was replaced
	pollEvery = 3 * time.Second        // between two walks when nothing tells of changes
)

// Watch calls changed whenever something in the folder may have changed, once
// things have been quiet for 300 ms, or after 2 s; and once at the start, when
// it has begun to watch, so that nothing is missed between a walk before and
// the watch. It never calls twice at once, and returns the context's error.
//
// Where the system has no watches (left), it says so in the log and walks the
// folder every few seconds instead.
func (f *Folder) Watch(ctx context.Context, changed func()) error {
	events := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.watch(ctx, func() {
			select {
			case events <- struct{}{}:
			default:
			}
		})
	}()
	debounce(ctx, events, changed)
	<-ended
	return ctx.Err()
}

// debounce calls changed once for every row of events, until ctx ends.
func debounce(ctx context.Context, events <-chan struct{}, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
		}
		limit := time.After(longest)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-events:
			case <-limit:
				waiting = false
			case <-time.After(quiet):
				waiting = false
			}
		}
		changed()
	}
}

// watch calls event for everything that happens, until ctx ends. A folder that
// was replaced is watched anew; one that cannot be watched is polled.
func (f *Folder) watch(ctx context.Context, event func()) {
	for ctx.Err() == nil {
		err := f.notify(ctx, event)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
		case errors.Is(err, errNoFolder), errors.Is(err, fs.ErrNotExist):
			wait(ctx, look)
		default:
			f.log.Warn("cannot watch the folder for changes: looking every few seconds instead", "folder", f.dir, "error", err)
			f.poll(ctx, event)
			return
		}
	}
}

// notify watches until the folder is another one (nil), or watching fails.
func (f *Folder) notify(ctx context.Context, event func()) error {
	t, err := f.refresh(ctx)
	if err != nil {
		return err
	}
	n, err := f.watcher()
	if err != nil {
		return err
	}
	defer n.Close()
	if err := f.add(ctx, n, t, "."); err != nil {
		return err
	}
	event()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if info, err := os.Stat(f.dir); err != nil || !os.SameFile(info, t.info) {
				event()
				return nil
			}
		case err, ok := <-n.Errors:
			if !ok {
				return fmt.Errorf("the watch has ended")
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return err
			}
			event() // events were lost, perhaps those of new directories too
			return nil
		case e, ok := <-n.Events:
			if !ok {
				return fmt.Errorf("the watch has ended")
			}
			rel, err := filepath.Rel(f.dir, e.Name)
			if err != nil {
				rel = "."
			}
			rel = filepath.ToSlash(rel)
			if rel != "." && hidden(path.Base(rel)) {
				continue
			}
			event()
			if info, err := t.root.Stat(rel); err == nil && info.IsDir() && e.Has(fsnotify.Create) {
				if err := f.add(ctx, n, t, rel); err != nil {
					return err
				}
			}
		}
	}
}

// add watches a directory with all below it.
func (f *Folder) add(ctx context.Context, n *fsnotify.Watcher, t *tree, name string) error {
	var failed error
	w := f.walker(t)
	w.dir = func(name string) {
		err := n.Add(filepath.Join(f.dir, filepath.FromSlash(name)))
		if failed == nil && err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			failed = err
		}
	}
	for range w.walk(ctx, name) {
		if failed != nil {
			break
		}
	}
	if errors.Is(failed, syscall.ENOSPC) {
		return fmt.Errorf("the system's limit of watches is reached: %w", failed)
	}
	return failed
}

// poll calls event whenever a walk sees something else than the one before,
// until ctx ends. Walks take at most a twentieth of the time.
func (f *Folder) poll(ctx context.Context, event func()) {
	var last uint64
	for ctx.Err() == nil {
		start := time.Now()
		h := fnv.New64a()
		for c, err := range f.Changes(ctx, "") {
			fmt.Fprintln(h, c.URL, c.Version, err)
			if c.Version == "" && c.Mark == nil {
				fmt.Fprintln(h, start.UnixNano()) // it may change without a trace
			}
		}
		if sum := h.Sum64(); sum != last && ctx.Err() == nil {
			last = sum
			event()
		}
		wait(ctx, max(pollEvery, 20*time.Since(start)))
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
