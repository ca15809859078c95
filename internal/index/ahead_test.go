package index

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// rowsOf returns all data that an index stores of its passages.
func (f *fixture) rowsOf() (rows []string) {
	f.Helper()
	err := f.index.read(f.Context(), func(c *conn) error {
		for _, query := range []string{
			"SELECT p.id || ' ' || s.url || ' ' || p.ord || ' ' || p.chunk || ' ' || p.length || ' ' || p.print || ' ' || hex(p.profile) FROM passage p, page s ON s.id = p.page ORDER BY p.id",
			"SELECT id || ' ' || hex(data) FROM texts ORDER BY id",
			"SELECT term || ' ' || n FROM term ORDER BY term",
		} {
			err := c.rows(query, nil, func(scan scanner) error {
				var row string
				err := scan(&row)
				rows = append(rows, row)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return rows
}

// The content of an index does not depend on the number of processors, or on interruptions.
func TestAhead(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const pages = 250 // more than the limit of waiting items
	var first []string
	for i, processors := range []int{1, 4} {
		runtime.GOMAXPROCS(processors)
		f := newFixture(t)
		var batch []millrace.Change
		for i := range pages {
			p := prose(fmt.Sprintf("/p%03d", i), i, 300)
			if i == 10 { // larger than the limit of all waiting items together
				p.Blocks[1].Text = strings.Repeat("A sentence of the long page. ", aheadPages*aheadUnit/20)
			}
			batch = append(batch, put(p))
		}
		f.apply(batch...)
		ctx, cancel := context.WithCancel(t.Context())
		err := f.index.Update(ctx, f.head(), func(done, _ int) {
			if done > pages/8 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		if s := f.state(); s.done == 0 || s.done == pages {
			t.Errorf("stopped after %d pages", s.done)
		}
		f.update()
		got := f.rowsOf()
		if i == 0 {
			first = got
		} else if d := cmp.Diff(first, got); d != "" {
			t.Errorf("with %d processors: %s", processors, d)
		}
		if n := strings.Count(fmt.Sprint(first), "p010"); n < 10 {
			t.Errorf("%d passages of the long page", n)
		}
	}
}

// broken is a view that returns an error for one page.
type broken struct {
	millrace.View
	at  string
	err error
}

func (b broken) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		for p, err := range b.View.Scan(ctx, s) {
			if err == nil && p.URL == b.at {
				p, err = nil, b.err
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// A page that cannot be read ends an update. The next update continues.
func TestUnreadable(t *testing.T) {
	f := newFixture(t)
	for i := range 30 {
		f.apply(put(prose(fmt.Sprintf("/p%03d", i), i, 100)))
	}
	err := errors.New("it does not decode")
	if got := f.index.Update(t.Context(), broken{f.head(), base + "p020", err}, nil); !errors.Is(got, err) {
		t.Errorf("a damaged page: %v", got)
	}
	f.update()
	want(f, "pages", len(f.search(f.head(), "heading")), 30)
}
