package extract_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/extract"
)

const page = `<title>Leats</title><nav>Home | Shop</nav>
<main><h1>Leats</h1><p>A leat carries <em>water</em> to a mill.</p></main><footer>© us</footer>`

func ExampleHTML() {
	r, err := extract.HTML(context.Background(), []byte(page), "https://example.com/leat/", nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s", r.Page.Title, r.Page.Markdown())
	// Output: Leats: A leat carries *water* to a mill.
}

func ExampleNewRules() {
	rules, err := extract.NewRules(&extract.RulesOptions{Keep: []string{"footer"}, Drop: []string{"main em"}})
	if err != nil {
		panic(err)
	}
	r, _ := extract.HTML(context.Background(), []byte(page), "https://example.com/leat/", &extract.Options{Rules: rules})
	fmt.Println(r.Page.Text(), r.Kept)
	// Output:
	// A leat carries to a mill.
	//
	// © us [{body footer keep footer 1}]
}
