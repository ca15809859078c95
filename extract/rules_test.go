package extract

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func rulesOf(t testing.TB, keep, drop string) *Rules {
	t.Helper()
	o := &RulesOptions{}
	if keep != "" {
		o.Keep = strings.Split(keep, "; ")
	}
	if drop != "" {
		o.Drop = strings.Split(drop, "; ")
	}
	r, err := NewRules(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const prose = "The text of the page is here, and it is long enough to be one, with a second part that says a little more."

// page is a page with furniture around and inside its text.
const page = `<title>A page | Site</title><meta property="og:site_name" content="Site">
<body class=single><header><h2>Site</h2><nav><ul class=menu><li><a href=/>Home</a><li id=special>Special <b>offer</b></ul></nav></header>
<div id=page><h1>A page</h1><p class=byline>By Jane Doe</p><p class=lead>Lead ` + prose + `</p>
<div class=plug><p>Promo <span class=good>good</span> text</p></div><p>One ` + prose + ` <span class=mark>MARK</span> after</p>
<table><tr><th>a</th><th class=x>b</th></tr><tr><td>1</td><td class=x>2</td></tr></table><ul><li class=no>nay</li><li>yes</li></ul>
<pre><span class=prompt>$ </span>ls</pre><p>Two ` + prose + `</p></div>
<aside class=side><h3>Facts</h3><p>Fact one.</p><table><tr><td>f</td><td>g</td></tr></table></aside>
<div class=secret hidden><p>Secret <i>thing</i>.</p><p>Other.</p></div><button class=ask>Ask?</button>
<footer><p class=legal>Legal <a href=/l>words</a>.</p><p>Foot</p></footer>`

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, keep, drop string
		with, without    string // texts, between |
	}{
		{"none", "", "", "Lead|Promo good text|MARK|yes|nay|$ ls|Two", "Fact|Secret|Ask|Legal|Special|Foot|Home"},
		{"drop a block", "", ".plug", "Lead|One|Two", "Promo|good"},
		{"drop an inline element", "", ".mark", "One|after", "MARK"},
		{"keep in what is dropped", ".good", ".plug", "good|Two", "Promo|good text"},
		{"keep and drop of one element", ".plug", ".plug", "Promo good text", ""},
		{"drop in what is kept", ".plug", ".good", "Promo text", "good"},
		{"cells", "", ".x", "a|1|yes", "b\n|2"},
		{"items", "", "li.no", "yes", "nay"},
		{"in code", "", ".prompt", "ls", "$"},
		{"keep an aside", "aside.side", "", "Two|Facts|Fact one.|f|g", "Secret|Legal|Foot|Site"},
		{"keep what is hidden", ".secret i", "", "Two|thing", "Secret|Other|Fact"},
		{"keep in a list of a menu", "#special", "", "Special offer|Two", "Home|Site"},
		{"keep in the footer", "footer .legal", "", "Two|Legal words.", "Foot"},
		{"keep a button", "button.ask", "", "Two|Ask?", "Fact"},
		{"keep a cell", ".side td:last-child", "", "g", "Fact"},
		{"keep the body", "body", "", "Home|Special|Lead|Facts|Foot", "Secret|Ask"},
		{"keep the document", "html", "footer", "Home|Special|Lead|Facts", "Secret|Foot"},
		{"drop the body", ".legal", "body", "Legal words.", "Foot|Two|Home"},
		{"drop the document", ".legal; aside", "html", "Facts|Legal words.", "Foot|Two|Home"},
		{"drop everything", "", "body", "", "Two"},
		{"nothing matches", ".none", "#none", "Lead|Promo good text", "Fact"},
		{"the title", "h1", "h1", "Lead", "A page"},
		{"a group", "aside, .legal", "", "Facts|Legal words.", "Foot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := HTML(t.Context(), []byte(page), "https://example.com/a", &Options{Rules: rulesOf(t, c.keep, c.drop)})
			if err != nil {
				t.Fatal(err)
			}
			checkBlocks(t, res.Page.Blocks)
			text := res.Page.Text()
			for _, s := range strings.Split(c.with, "|") {
				if !strings.Contains(text, s) {
					t.Errorf("%q is missing in:\n%s", s, text)
				}
			}
			for _, s := range strings.Split(c.without, "|") {
				if strings.TrimSpace(s) != "" && strings.Contains(text, s) {
					t.Errorf("%q is in:\n%s", s, text)
				}
			}
			if (text == "") != (res.Reason != "") {
				t.Errorf("reason %q", res.Reason)
			}
			if res.Page.Title != "A page" || res.Page.Author != "Jane Doe" {
				t.Errorf("title %q, author %q", res.Page.Title, res.Page.Author)
			}
			if len(res.Links) != 2 {
				t.Errorf("links %v", res.Links)
			}
		})
	}
}

// Kept elements are in the order of the document, wherever they stand.
func TestRulesOrder(t *testing.T) {
	res, err := HTML(t.Context(), []byte(page), "https://example.com/a", &Options{Rules: rulesOf(t, "footer .legal; #special; .good", "#page p; #page table; #page ul; pre; h1")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range res.Page.Blocks {
		got = append(got, millrace.Text([]millrace.Block{b}))
	}
	if d := cmp.Diff([]string{"- Special offer", "good", "Legal words."}, got); d != "" {
		t.Error(d, res.Page.Markdown())
	}
}

func TestRulesErrors(t *testing.T) {
	for _, text := range []string{
		"", " ", "a,", ",a", "a >", "> a", "..a", "a[", "a:hover", "a::before", "a:nth-child(x)", "a:not(b c)", "a:has(b c)", "a:contains(x)", "a|b", "a b{}", "[a=", "a:not()", "5a", "#", "\\",
		strings.Repeat("a", 1001), strings.Repeat("a ", 300) + "a", strings.Repeat(":has(a)", 9),
	} {
		_, err := NewRules(&RulesOptions{Drop: []string{text}})
		if !errors.Is(err, millrace.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("drop %q", text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := NewRules(&RulesOptions{Keep: []string{"a", "b::c"}}); err == nil || !strings.Contains(err.Error(), `keep "b::c"`) {
		t.Error(err)
	}
	if r, err := NewRules(nil); err != nil || r.Fingerprint() != "" {
		t.Error(r, err)
	}
}
