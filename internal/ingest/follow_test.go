package ingest_test

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// published is a publisher that publishes nothing.
type published struct{}

func (published) Changed()        {}
func (published) Published() bool { return true }

// A process that follows another one waits for that process's first scan. Otherwise it would
// publish part of the site.
func TestFollowFirstScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, name, end := memory.New(nil), "https://follow.test/", make(chan bool)
		start := func() *ingest.Origin {
			source := onePage{name + "a", end}
			o := &ingest.Origin{Store: st, Name: name, From: name + " test", Base: name, Source: source, Logger: slog.New(slog.DiscardHandler)}
			site, err := st.Site(t.Context(), name, name)
			if err != nil {
				t.Fatal(err)
			}
			o.SetBusy()
			go run(t, o, site)
			synctest.Wait()
			return o
		}
		first, second := start(), start()
		if !first.Busy() || !second.Busy() {
			t.Errorf("during the first scan: %t, %t", first.Busy(), second.Busy())
		}
		close(end)
		synctest.Wait()
		if first.Busy() || second.Busy() {
			t.Errorf("after the first scan: %t, %t", first.Busy(), second.Busy())
		}
	})
}

func run(t *testing.T, o *ingest.Origin, site store.Site) {
	if err := o.Run(t.Context(), site, published{}); err != nil {
		t.Error(err)
	}
}
