package folder_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
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
