package markdown_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/markdown"
)

func ExampleNew() {
	f, err := markdown.New("../../testdata/sites/md-hugo", nil)
	if err != nil {
		panic(err)
	}
	p, err := f.Page(context.Background(), millrace.Ref{URL: "/content/posts/first-flour.md"})
	fmt.Println(f.Kind(), f.Base(), p.URL, p.Title, err)
	// Output: hugo https://mill.example/site/ /2024/04/first-flour/ First flour of the year <nil>
}

// ExampleNew_mirror reads a folder of Markdown into memory.
func ExampleNew_mirror() {
	f, _ := markdown.New("../../testdata/sites/md-hugo", nil)
	var pages mirror.Pages
	report, err := mirror.Sync(context.Background(), "mill", f, &pages, nil)
	fmt.Println(report.Added == pages.Len(), pages.Page("/2024/04/first-flour/").Title, err)
	// Output: true First flour of the year <nil>
}
