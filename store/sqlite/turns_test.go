package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// A writer that writes for a long time, such as an indexer, pauses for other writers, so they wait
// no longer than their timeout.
func TestWritersTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	site := benchSite(t, path)
	other, err := openFile(t.Context(), path, settings{wait: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	writing, err := other.Site(t.Context(), "bench", benchBase)
	if err != nil {
		t.Fatal(err)
	}
	site.store.db.writer.most = 200 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for {
			err := site.store.db.writer.do(ctx, func(*tx) error {
				time.Sleep(5 * time.Millisecond)
				return nil
			})
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 3 {
		time.Sleep(20 * time.Millisecond)
		if _, err := writing.Apply(t.Context(), "bench", changesOf(rng, fmt.Sprint("g", i), 1, 100)); err != nil {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
