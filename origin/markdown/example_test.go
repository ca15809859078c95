package markdown_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
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
