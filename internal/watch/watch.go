// Package watch reports changes in a folder, by the system's watches or, if none are
// available, by polling.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/millrace/millrace/internal/tree"
)

const (
	quiet     = 300 * time.Millisecond // time without an event after which changes have ended
	longest   = 2 * time.Second        // maximum time that an event waits for quiet
	look      = 2 * time.Second        // time between two checks for a replaced folder
	pollEvery = 3 * time.Second        // time between two walks while polling
)

// Folder is a folder to watch. All fields are required.
type Folder struct {
	Dir string // absolute path
	// Root opens the folder again, and returns it with its FileInfo.
	Root func(ctx context.Context) (*os.Root, fs.FileInfo, error)
	// Walk calls add with the slash-separated name of a directory, and of each directory below it
	// that is a part of the site, until add returns false.
	Walk func(ctx context.Context, root *os.Root, name string, add func(name string) (more bool))
	// Sum returns a number that changes with every change of the folder, for polling.
	Sum    func(ctx context.Context) uint64
	Logger *slog.Logger
}

// watcher creates a file watcher of the system. Tests use another function.
type watcher func() (*fsnotify.Watcher, error)

// Watch calls changed after any change in the folder, when there were no events for 300 ms, or
// after 2 s. It also calls changed when watching starts, because changes may have happened since an
// earlier walk. It never makes concurrent calls, and returns the context's error.
//
// If the system has no watches left, Watch logs this and walks the folder every few seconds
// instead.
func (f *Folder) Watch(ctx context.Context, changed func()) error {
	return f.run(ctx, fsnotify.NewWatcher, changed)
}

func (f *Folder) run(ctx context.Context, w watcher, changed func()) error {
	events := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.watch(ctx, w, func() {
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

// debounce calls changed once for every burst of events, until ctx ends.
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

// watch calls event for every change, until ctx ends. It watches a replaced folder
// again, and polls one that cannot be watched.
func (f *Folder) watch(ctx context.Context, w watcher, event func()) {
	for ctx.Err() == nil {
		err := f.notify(ctx, w, event)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
		case errors.Is(err, tree.ErrNoFolder), errors.Is(err, fs.ErrNotExist):
			wait(ctx, look)
		default:
			f.Logger.Warn("cannot watch the folder; polling it", "path", f.Dir, "err", err)
			f.poll(ctx, event)
			return
		}
	}
}

// notify watches until the folder is replaced, and then returns nil, or until watching fails.
func (f *Folder) notify(ctx context.Context, w watcher, event func()) error {
	root, self, err := f.Root(ctx)
	if err != nil {
		return err
	}
	n, err := w()
	if err != nil {
		return err
	}
	defer n.Close()
	if err := f.add(ctx, n, root, "."); err != nil {
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
			if info, err := os.Stat(f.Dir); err != nil || !os.SameFile(info, self) {
				event()
				return nil
			}
		case err, ok := <-n.Errors:
			if !ok {
				return fmt.Errorf("watch ended")
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return err
			}
			event() // events were lost, perhaps including events of new directories
			return nil
		case e, ok := <-n.Events:
			if !ok {
				return fmt.Errorf("watch ended")
			}
			rel, err := filepath.Rel(f.Dir, e.Name)
			if err != nil {
				rel = "."
			}
			rel = filepath.ToSlash(rel)
			if rel != "." && tree.Hidden(path.Base(rel)) {
				continue
			}
			event()
			if info, err := root.Stat(rel); err == nil && info.IsDir() && e.Has(fsnotify.Create) {
				if err := f.add(ctx, n, root, rel); err != nil {
					return err
				}
			}
		}
	}
}

// add watches a directory and all directories below it.
func (f *Folder) add(ctx context.Context, n *fsnotify.Watcher, root *os.Root, name string) error {
	var failed error
	f.Walk(ctx, root, name, func(name string) bool {
		err := n.Add(filepath.Join(f.Dir, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			failed = err
		}
		return failed == nil
	})
	if errors.Is(failed, syscall.ENOSPC) {
		return fmt.Errorf("system limit of watches reached: %w", failed)
	}
	return failed
}

// poll calls event whenever a walk differs from the previous one, until ctx ends. Walks
// take at most a twentieth of the time.
func (f *Folder) poll(ctx context.Context, event func()) {
	var last uint64
	for ctx.Err() == nil {
		start := time.Now()
		if sum := f.Sum(ctx); sum != last && ctx.Err() == nil {
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

// Walk returns the Walk of a [Folder]. It reads the directories with the walker of a root.
func Walk(walker func(root *os.Root) *tree.Walker) func(context.Context, *os.Root, string, func(string) bool) {
	return func(ctx context.Context, root *os.Root, name string, add func(string) bool) {
		more, w := true, walker(root)
		w.Dir = func(name string) { more = more && add(name) }
		for range w.Walk(ctx, name) {
			if !more {
				return
			}
		}
	}
}
