package millrace_test

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace"
)

// Text and Markdown are rendered from the same blocks.
func ExamplePage_Markdown() {
	p := &millrace.Page{Blocks: []millrace.Block{
		{Type: millrace.HeadingBlock, Level: 2, Text: "Opening the gate"},
		{Type: millrace.ListBlock, Ordered: true, Items: []millrace.Item{{Text: "Lift the paddle."}, {Text: "Wait *here*."}}},
	}}
	fmt.Print(p.Markdown())
	// Output:
	// ## Opening the gate
	//
	// 1. Lift the paddle.
	// 2. Wait \*here\*.
}

func ExamplePage_Text() {
	p := &millrace.Page{Blocks: []millrace.Block{
		{Type: millrace.HeadingBlock, Level: 2, Text: "Opening the gate"},
		{Type: millrace.ListBlock, Ordered: true, Items: []millrace.Item{{Text: "Lift the paddle."}, {Text: "Wait *here*."}}},
	}}
	fmt.Print(p.Text())
	// Output:
	// Opening the gate
	//
	// 1. Lift the paddle.
	// 2. Wait *here*.
}

// A source that provides only the title does not change other fields.
func ExampleMerge() {
	stored := &millrace.Page{URL: "/gate/", Title: "Gate", Author: "Ada", Known: millrace.FieldTitle | millrace.FieldAuthor}
	in := &millrace.Page{URL: "/gate/", Title: "The gate", Known: millrace.FieldTitle}
	page, changed := millrace.Merge(stored, in)
	fmt.Printf("%s by %s, changed: %t\n", page.Title, page.Author, changed)
	// Output: The gate by Ada, changed: true
}

func ExampleVisibility_Apply() {
	rule := millrace.Visibility{Exclude: []string{"/drafts"}, Authors: millrace.AuthorHidden}
	_, ok := rule.Apply(&millrace.Page{URL: "/drafts/wheel/"})
	page, _ := rule.Apply(&millrace.Page{URL: "/gate/", Title: "Gate", Author: "Ada"})
	fmt.Printf("%t %q %q\n", ok, page.Title, page.Author)
	// Output: false "Gate" ""
}

// The sentinel of an error shows what a caller can do about it.
func ExampleStatusErr() {
	err := fmt.Errorf("page /gate/: %w", millrace.StatusErr(410))
	fmt.Println(millrace.ErrorCode(err), errors.Is(err, millrace.ErrNotFound), millrace.Status(err))
	// Output: not-found true 404
}
