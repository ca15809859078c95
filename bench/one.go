package main

import (
	"context"
	"fmt"
	"os"

	"github.com/millrace/millrace"
	stores "github.com/millrace/millrace/store/all"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "one" {
		ctx := context.Background()
		db, err := stores.Open(ctx, os.Args[2], nil)
		if err != nil { panic(err) }
		site, err := db.Site(ctx, benchSite, benchSite)
		if err != nil { panic(err) }
		var n int
		fmt.Sscan(os.Args[3], &n)
		p := synthetic(n, fmt.Sprintf("%sp/%d/", benchSite, n))
		p.Title += ", edited"
		p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TextBlock, Text: "This is one edit " + os.Args[3]})
		if _, err := site.Apply(ctx, "bench", []millrace.Change{{Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL}, Page: p}}); err != nil { panic(err) }
		db.Close()
		os.Exit(0)
	}
}
