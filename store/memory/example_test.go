package memory_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/memory"
)

func Example() {
	ctx := context.Background()
	st := memory.New(nil)
	site, _ := st.Site(ctx, "https://example.com/", "https://example.com/")
	page := &millrace.Page{URL: "/leat/", Title: "Leats", Known: millrace.FieldTitle}
	counts, err := site.Apply(ctx, "me", []millrace.Change{{Ref: millrace.Ref{URL: "/leat/"}, Page: page}})
	fmt.Println(counts.Added, "added;", err)
	// Output: 1 added; <nil>
}
