package folder_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
)

func ExampleNew() {
	f, err := folder.New("../../testdata/sites/handbook", &folder.Options{Base: "https://handbook.example/"})
	if err != nil {
		panic(err)
	}
	p, err := f.Page(context.Background(), millrace.Ref{URL: "/about/"})
	fmt.Println(p.URL, p.Title, err)
	// Output: /about/ About <nil>
}

// ExampleNew_mirror reads a folder into memory.
func ExampleNew_mirror() {
	f, _ := folder.New("../../testdata/sites/handbook", &folder.Options{Base: "https://handbook.example/"})
	var pages mirror.Pages
	report, err := mirror.Sync(context.Background(), "handbook", f, &pages, nil)
	fmt.Println(report.Added == pages.Len(), pages.Page("/about/").Title, err)
	// Output: true About <nil>
}
