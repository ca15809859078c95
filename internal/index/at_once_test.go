package index

import (
	"fmt"
	"sync"
	"testing"

	"github.com/millrace/millrace"
)

// TestAtOnce searches in several goroutines while pages change. Meanwhile two indexes over one
// file, as in two processes, are updated and fitted.
func TestAtOnce(t *testing.T) {
	f := newFixture(t)
	add := func(first, n int) {
		var batch []millrace.Change
		for i := range n {
			batch = append(batch, put(prose(fmt.Sprintf("/p%03d", first+i), first+i, 300)))
		}
		f.apply(batch...)
	}
	add(0, 120)
	f.update()
	f.fit()
	v := f.head()
	other := f.openIndex()
	defer other.Close()
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			x := []*Index{f.index, other}[w%2]
			for i := w; i < 120; i += 6 {
				found, err := x.Search(t.Context(), v, millrace.Query{Text: fmt.Sprintf("heading text%d", i), Limit: 1})
				if err != nil || len(found.Hits) != 1 || relative(found.Hits[0].URL) != fmt.Sprintf("/p%03d", i) {
					t.Errorf("text%d: %+v, %v", i, found, err)
				}
			}
		})
	}
	for i := range 5 {
		add(120+10*i, 10)
		head := f.head()
		var both sync.WaitGroup
		for _, x := range []*Index{f.index, other} {
			both.Go(func() {
				if err := x.Update(t.Context(), head, nil); err != nil {
					t.Error(err)
				}
				if err := x.Fit(t.Context(), nil); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		want(f, "come as far as", uint64(f.state().seq), head.Site().Seq)
	}
	wg.Wait()
}

// If two processes build one index at the same time, its content is built once.
func TestBuiltAtOnce(t *testing.T) {
	f := newFixture(t)
	var batch []millrace.Change
	for i := range 300 {
		batch = append(batch, put(prose(fmt.Sprintf("/p%03d", i), i, 300)))
	}
	f.apply(batch...)
	other := f.openIndex()
	defer other.Close()
	head := f.head()
	var both sync.WaitGroup
	for _, x := range []*Index{f.index, other} {
		both.Go(func() {
			if err := x.Update(t.Context(), head, nil); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	got := f.rowsOf()
	fresh := newFixture(t)
	fresh.apply(batch...)
	fresh.update()
	want(f, "rows", got, fresh.rowsOf())
}
