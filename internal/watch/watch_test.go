package watch

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

func TestDebounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		events := make(chan struct{})
		start := time.Now()
		var calls []time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			debounce(ctx, events, func() { calls = append(calls, time.Since(start)) })
		}()
		events <- struct{}{} // one event
		time.Sleep(time.Second)
		for range 25 { // a burst of events for 5 s
			events <- struct{}{}
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(time.Second)
		cancel()
		<-done
		want := []time.Duration{quiet, time.Second + longest}
		for i, w := range want {
			if len(calls) <= i || calls[i] != w {
				t.Fatalf("called at %v, want %v first", calls, want)
			}
		}
		if len(calls) < 3 || len(calls) > 5 {
			t.Errorf("called at %v", calls)
		}
	})
}

// If the system has no watches left, the folder is polled.
func TestFallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var state atomic.Uint64
		state.Store(7)
		f := &Folder{
			Dir:    t.TempDir(),
			Root:   func(context.Context) (*os.Root, fs.FileInfo, error) { return nil, nil, nil },
			Sum:    func(context.Context) uint64 { return state.Load() },
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.run(ctx, func() (*fsnotify.Watcher, error) { return nil, syscall.ENOSPC }, func() { calls.Add(1) })
		}()
		time.Sleep(5 * pollEvery)
		synctest.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls for an unchanged folder, want only the first one", n)
		}
		state.Store(8)
		time.Sleep(pollEvery + longest)
		synctest.Wait()
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls after a change, want 2", n)
		}
		cancel()
		<-done
		if log.Len() == 0 {
			t.Errorf("log %q", log.String())
		}
	})
}
