package extract_test

import (
	"testing"

	"github.com/millrace/millrace/extract"
)

func TestSiteNames(t *testing.T) {
	t.Parallel()
	const declared = `<meta property="og:site_name" content="The &amp; Mill">`
	const website = `<script type="application/ld+json">{"@context":"https://schema.org","@type":"WebSite","name":"The Mill"}</script>`
	for name, c := range map[string]struct {
		heads []string // the first is the home page's
		want  string
	}{
		"declared by the home page": {[]string{declared, "<title>A | B</title>", "<title>C | B</title>"}, "The & Mill"},
		"JSON-LD":                   {[]string{website}, "The Mill"},
		"suffix":                    {[]string{"<title>The Mill</title>", "<title>A – The Mill</title>", "<title>B – The Mill</title>"}, "The Mill"},
		"longer titles":             {[]string{"<title>A - b - The Mill</title>", "<title>C - The Mill</title>"}, "The Mill"},
		"prefix":                    {[]string{"<title>The Mill » A</title>", "<title>The Mill » B</title>"}, "The Mill"},
		"one page":                  {[]string{"<title>A | B</title>"}, ""},
		"nothing in common":         {[]string{"<title>A | B</title>", "<title>C | D</title>", "<title>E | B</title>", "<title>E | F</title>"}, ""},
		"no titles":                 {[]string{"", "", ""}, ""},
	} {
		var names extract.SiteNames
		for i, head := range c.heads {
			r, err := extract.HTML(t.Context(), []byte("<html><head>"+head+"</head><body><p>Some text.</p></body></html>"), "https://example.com/", nil)
			if err != nil {
				t.Fatal(err)
			}
			names.Add(r, i == 0)
		}
		if got := names.Name(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
