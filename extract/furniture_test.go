package extract

import (
	"strings"
	"testing"
)

// Elements marked as advertisements are left out, even on a short page. A longer text with
// such a class is kept.
func TestAdverts(t *testing.T) {
	const head = `<title>Hours</title><main><h1>Hours</h1><p>We are open from Monday to Friday.</p>`
	for _, c := range []struct {
		name, doc string
		want      bool // the text about shoes is kept
	}{
		{"none", `<div><p>Buy shoes.</p></div>`, true},
		{"by its class", `<div class=ad><p>Buy shoes.</p></div>`, false},
		{"by another", `<div class="box ad_slot"><p>Buy shoes.</p></div>`, false},
		{"of a server", `<div class=adsbygoogle>Buy shoes.</div>`, false},
		{"by its id", `<div id=div-gpt-ad-1><p>Buy shoes.</p></div>`, false},
		{"by an attribute", `<div data-ad-slot=7><p>Buy shoes.</p></div>`, false},
		{"a part of a word", `<div class=roadside><p>Buy shoes.</p></div>`, true},
		{"a long text", `<div class=ad><p>Buy shoes. ` + strings.Repeat("Plain words of the page stand here. ", 12) + `</p></div>`, true},
		{"with a heading", `<div class=ad><h2>Shoes</h2><p>Buy shoes.</p></div>`, true},
	} {
		text := extractPage(t, "https://example.com/hours", head+c.doc+`</main>`).Page.Text()
		if got := strings.Contains(text, "Buy shoes"); got != c.want || !strings.Contains(text, "We are open") {
			t.Errorf("%s: %q", c.name, text)
		}
	}
}
