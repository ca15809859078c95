package dir

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/millrace/millrace/internal/replace"
)

// maxSyncs is the maximum number of files that a batch syncs at the same time. The file system
// combines concurrent syncs.
const maxSyncs = 16

// batch syncs files while its caller continues. A new file gets its name after it was synced.
type batch struct {
	syncs   chan struct{} // contains a value for each running sync
	running sync.WaitGroup

	mu      sync.Mutex
	err     error                    // first error of a sync
	pending map[string]chan struct{} // channels that are closed when the change of an artifact is visible
	folders map[string]bool          // folders to sync at the end
}

type batchKey struct{ *Store }

// batchOf returns the batch of a context, or nil if it has none.
func (s *Store) batchOf(ctx context.Context) *batch {
	b, _ := ctx.Value(batchKey{s}).(*batch)
	return b
}

// Batch implements [artifact.Batcher].
func (s *Store) Batch(ctx context.Context, f func(ctx context.Context) error) error {
	if s.batchOf(ctx) != nil {
		return f(ctx)
	}
	b := &batch{syncs: make(chan struct{}, maxSyncs), pending: make(map[string]chan struct{}), folders: make(map[string]bool)}
	err := f(context.WithValue(ctx, batchKey{s}, b))
	b.running.Wait()
	if err = cmp.Or(err, b.err); err != nil {
		return err
	}
	for _, folder := range slices.Sorted(maps.Keys(b.folders)) {
		if err := replace.SyncFolder(s.root.Load().Open(folder)); err != nil {
			return explain("sync the folder of artifacts", err)
		}
	}
	return nil
}

// hold waits until no change of an artifact is pending. The caller's change is then pending until
// done is called.
func (b *batch) hold(name string) (done func()) {
	visible := make(chan struct{})
	for {
		b.mu.Lock()
		earlier, ok := b.pending[name]
		if !ok {
			b.pending[name] = visible
			b.mu.Unlock()
			return func() {
				b.mu.Lock()
				delete(b.pending, name)
				b.mu.Unlock()
				close(visible)
			}
		}
		b.mu.Unlock()
		<-earlier
	}
}

// wait waits until no change of an artifact is pending. A nil batch has no changes.
func (b *batch) wait(name string) {
	if b != nil {
		b.hold(name)()
	}
}

// waitAll waits for the changes that are pending when it is called.
func (b *batch) waitAll() {
	if b == nil {
		return
	}
	b.mu.Lock()
	names := slices.Collect(maps.Keys(b.pending))
	b.mu.Unlock()
	for _, name := range names {
		b.wait(name)
	}
}

// changed makes Batch sync a folder at the end.
func (b *batch) changed(folder string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.folders[folder] = true
}

// later runs f in a goroutine. If maxSyncs such functions are running, later first waits for one.
func (b *batch) later(f func() error) {
	b.syncs <- struct{}{}
	b.running.Go(func() {
		defer func() { <-b.syncs }()
		if err := f(); err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.err == nil {
				b.err = err
			}
		}
	})
}
