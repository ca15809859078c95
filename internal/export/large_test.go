package export

import (
	"context"
	"fmt"
	"io"
	"iter"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// generated is a view of any number of pages.
type generated struct {
	*protocoltest.View
	pages int
	text  string
}

func (g generated) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		for i := range g.pages {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			p := &millrace.Page{
				URL: fmt.Sprintf("https://large.example/part-%03d/page-%06d/", i/1000, i), Title: fmt.Sprint("Page ", i), Language: "en",
				Modified: noon, Version: fmt.Sprintf("%064x", i), Known: millrace.FieldTitle | millrace.FieldContent, Detail: millrace.DetailText,
			}
			if s.WithBlocks {
				p.Blocks = []millrace.Block{{Type: millrace.TextBlock, Text: fmt.Sprint(i, " ", g.text)}}
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// peak returns the maximum growth of the live heap while run runs.
func peak(t *testing.T, run func(look func())) uint64 {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	var m runtime.MemStats
	for range 3 { // two collections empty the pools
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
	run(func() {
		runtime.GC()
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	})
	return max(most, before) - before
}

// The memory of an export does not grow with the site.
func TestMemory(t *testing.T) {
	pages, text := testkit.Size(2_000, 2_000, 10_000), 4_000
	sites, small := []Site{large(pages, text)}, []Site{large(pages/8, text/4)}
	for name, write := range map[string]func(o *Options) (Counts, error){
		"jsonl":   func(o *Options) (Counts, error) { return Lines(t.Context(), io.Discard, sites, o) },
		"csv":     func(o *Options) (Counts, error) { return CSV(t.Context(), io.Discard, sites, o) },
		"parquet": func(o *Options) (Counts, error) { return Parquet(t.Context(), t.TempDir(), sites, o) },
		"markdown": func(o *Options) (Counts, error) {
			return Markdown(t.Context(), tree(t.TempDir(), small), small, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c Counts
			used := peak(t, func(look func()) {
				var err error
				c, err = write(&Options{Progress: func(done int) {
					if done%500 == 0 {
						look()
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("%d pages, %d MB written, peak of %d kB", c.Pages, c.Bytes>>20, used>>10)
			limit := uint64(4 << 20)
			if name == "parquet" {
				limit = 3 * groupBytes
			}
			if used > limit {
				t.Errorf("peak of %d bytes, want at most %d", used, limit)
			}
		})
	}
}
