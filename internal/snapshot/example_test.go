package snapshot_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/snapshot"
)

const page = `<main data-ai-page="visit"><h1 data-ai-heading="title">Visit the mill</h1>
<form data-ai-group="tickets"><label>Day <input data-ai-field="day"></label></form></main>`

// Extraction with these rules adds a snapshot to the page.
func ExampleExtra() {
	rules, _ := extract.NewRules(&extract.RulesOptions{Extra: snapshot.Extra()})
	res, _ := extract.HTML(context.Background(), []byte(page), "https://mill.example/visit", &extract.Options{Rules: rules})
	fmt.Printf("%s\n", res.Page.Extra[snapshot.ExtraKey])
	// Output: {"groups":[{"fields":[{"field":"day","label":"Day","type":"text"}],"name":"tickets"}],"page":"visit","title":"Visit the mill"}
}

func ExampleLint() {
	findings, _ := snapshot.Lint(context.Background(), []byte(page), "https://mill.example/visit")
	for _, f := range findings {
		fmt.Printf("%d:%d %s %s\n", f.Line, f.Column, f.Path, f.Rule)
	}
	// Output: 2:1 html > body > main > form group-in-section
}

func ExampleAnnotate() {
	plain := `<main><h1>The mill</h1><p>It has stood at the ford for three hundred years.</p></main>`
	out, _, _ := snapshot.Annotate(context.Background(), []byte(plain), "https://mill.example/")
	fmt.Printf("%s\n", out)
	// Output: <main data-ai-page="home"><h1 data-ai-heading="title">The mill</h1><p data-ai-summary="summary">It has stood at the ford for three hundred years.</p></main>
}
