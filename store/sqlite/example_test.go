package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/sqlite"
)

var ctx = context.Background()

// newStore opens a store in a new temporary folder. remove closes the store and deletes the
// folder.
func newStore(ctx context.Context) (st *sqlite.Store, remove func()) {
	dir, err := os.MkdirTemp("", "millrace-example-")
	if err != nil {
		panic(err)
	}
	if st, err = sqlite.Open(ctx, filepath.Join(dir, "site.db"), nil); err != nil {
		panic(err)
	}
	return st, func() {
		_ = st.Close()
		_ = os.RemoveAll(dir)
	}
}

func ExampleStore_Site() {
	st, remove := newStore(ctx)
	defer remove()
	site, _ := st.Site(ctx, "mill", "https://example.com/")
	page := &millrace.Page{URL: "/leat/", Title: "Leats", Known: millrace.FieldTitle}
	counts, err := site.Apply(ctx, "me", []millrace.Change{{Ref: millrace.Ref{URL: "/leat/"}, Page: page}})
	fmt.Println(counts.Added, "added;", err)
	// Output: 1 added; <nil>
}
