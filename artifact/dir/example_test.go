package dir_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/artifact/dir"
)

func Example() {
	store, remove := newStore()
	defer remove()
	err := store.Put(ctx, "chunks/9f/86d081", strings.NewReader("0123456789"))
	r := must(store.Open(ctx, "chunks/9f/86d081", 4, 3))
	fmt.Println(string(must(io.ReadAll(r))), err, r.Close())
	// Output: 456 <nil> <nil>
}

var ctx = context.Background()

// newStore opens a store in a new temporary folder. remove closes the store and deletes the
// folder.
func newStore() (s *dir.Store, remove func()) {
	temp := must(os.MkdirTemp("", "millrace-example-"))
	s = must(dir.Open(filepath.Join(temp, "artifacts")))
	return s, func() {
		_ = s.Close()
		_ = os.RemoveAll(temp)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
