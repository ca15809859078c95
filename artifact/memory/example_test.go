package memory_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/artifact/memory"
)

func Example() {
	ctx, store := context.Background(), memory.New(&memory.Options{MaxBytes: 1 << 20})
	err := store.Put(ctx, "chunks/9f/86d081", strings.NewReader("0123456789"))
	for info := range store.List(ctx, "chunks/") {
		fmt.Println(info.Name, info.Size, err)
	}
	// Output: chunks/9f/86d081 10 <nil>
}
