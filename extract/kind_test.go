package extract

import (
	"testing"

	"github.com/millrace/millrace"
)

func TestManualsByStructure(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		want      millrace.PageKind
	}{
		{"docutils", "<meta name=generator content='Docutils 0.19'>", millrace.Documentation},
		{"publican", "<meta name=generator content='publican v4'>", millrace.Documentation},
		{"Sphinx by its style", "<link rel=stylesheet href='../_static/pygments.css?v=1'>", millrace.Documentation},
		{"another style", "<link rel=stylesheet href=/assets/pygments.css>", millrace.Article},
		{"mdBook", "<link rel=stylesheet href=../ayu-highlight-1f.css>", millrace.Documentation},
		{"RDoc", "<link rel=stylesheet href=./css/rdoc.css>", millrace.Documentation},
		{"Node", "<body class='alt apidoc' id=api-section-fs>", millrace.Documentation},
		{"DocBook", "<body><div class=titlepage><div><div><h2 class=title>Gates</h2></div></div></div>", millrace.Documentation},
		{"Sphinx by its body", "<body><div class=body role=main>", millrace.Documentation},
		{"Sphinx by its entries", "<body><dl class='py method'><dt>open()<dd>Opens the gate.</dl>", millrace.Documentation},
		{"nothing of these", "<body class=alt><div class=body><h2 class=title>Gates</h2>", millrace.Article},
	} {
		res := extractPage(t, "https://example.com/a", "<title>Page</title>"+c.doc+filler+filler)
		if res.Page.Kind != c.want {
			t.Errorf("%s: kind %q, want %q", c.name, res.Page.Kind, c.want)
		}
	}
}
