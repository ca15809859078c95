package extract

import (
	"errors"
	"fmt"
	"slices"
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

// page is a page with boilerplate around its text and inside it.
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
		with, without    string // texts, separated by |
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
			if (text == "") != (res.Reason != nil) {
				t.Errorf("reason %v", res.Reason)
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

// Kept elements are in document order, wherever they are on the page.
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
		if !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != "bad-selector" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := NewRules(&RulesOptions{Keep: []string{"a", "b::c"}}); millrace.ErrorCode(err) != "bad-selector" {
		t.Error(err)
	}
	if r, err := NewRules(nil); err != nil || r.Fingerprint() != "" {
		t.Error(r, err)
	}
}

// The result lists the changes by rules in document order, with their selectors.
func TestRulesReported(t *testing.T) {
	res, err := HTML(t.Context(), []byte(page), "https://example.com/a", &Options{Rules: rulesOf(t, "footer .legal; #special; .lead; .x, .none; aside b", ".plug, .mark; .byline; td")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range res.Dropped {
		got = append(got, fmt.Sprintf("%s: %s %d", d.Selector, d.Reason, d.Words))
	}
	want := []string{
		"div#page p.byline: drop .byline 3", "div#page div.plug: drop .plug, .mark 3", "div#page span.mark: drop .plug, .mark 1", "div#page td: drop td 1",
		"body.single aside.side td: drop td 1", "body.single aside.side td: drop td 1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// Kept elements that are content without rules are not reported.
	if d := cmp.Diff([]Kept{{"li#special", "keep #special", 2}, {"body.single p.legal", "keep footer .legal", 2}}, res.Kept); d != "" {
		t.Error(d)
	}
	if res.Root != "div#page" {
		t.Errorf("root %s", res.Root)
	}
	checkSelectors(t, res)
	res, err = HTML(t.Context(), []byte("<main>"+strings.Repeat("<p class=x>a b</p><i class=y>c</i>", 5000)+"</main>"), "https://example.com/a", &Options{Rules: rulesOf(t, "i", ".x")})
	if err != nil || len(res.Dropped) != maxReported || len(res.Page.Text()) < 5000 {
		t.Errorf("%d told, %v", len(res.Dropped), err)
	}
}

// If only a rule finds content on a login page or a wall, the page has that content and no Reason.
// Login stays true.
func TestRulesOfWalls(t *testing.T) {
	for name, c := range map[string]struct{ html, keep, drop, want, reason string }{
		"a log-in":        {"<title>Log in</title><p class=hint>Members find the mill here.</p><form><p>Name</p><input type=password></form>", ".hint", "", "Members find the mill here.", ""},
		"scripts":         {"<title>App</title><noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div><template><p>The mill.</p></template>", "template p", "", "The mill.", ""},
		"a wall in a box": {"<noscript><p>Please enable JavaScript</p><div class=real>The mill.</div></noscript>", ".real", "", "The mill.", ""},
		"empty":           {"<title>T</title><nav><p>The mill.</p></nav>", "nav p", "", "The mill.", ""},
		"nothing kept":    {"<title>Log in</title><form><input type=password></form>", ".hint", "", "", "login"},
		"an empty part":   {"<title>Log in</title><form><input type=password></form><div class=hint><br></div>", ".hint", "", "", "login"},
		"all dropped":     {"<title>T</title><main><p>The mill and all the words that are said of it here.</p></main>", "", "main", "", "all-dropped"},
		"frames":          {"<frameset><frame src=a></frameset>", "html, body, frame", "frameset", "", "frames"},
		"no document":     {"", "html", "*", "", "no-content"},
	} {
		res, err := HTML(t.Context(), []byte(c.html), "https://example.com/a", &Options{Rules: rulesOf(t, c.keep, c.drop)})
		if err != nil {
			t.Fatal(err)
		}
		if res.Page.Text() != c.want || millrace.ErrorCode(res.Reason) != c.reason {
			t.Errorf("%s: %q, reason %v", name, res.Page.Text(), res.Reason)
		}
		if res.Login != strings.Contains(c.html, "password") {
			t.Errorf("%s: login %t", name, res.Login)
		}
	}
}

// Rules do not change the fields.
func TestRulesFields(t *testing.T) {
	for _, doc := range []string{
		page,
		`<title>Wheels</title><body class="archive category">` + strings.Repeat("<div class=p><h2><a href=/a>A wheel</a></h2><p>Of it.</p></div>", 5) + "<p class=z>End of it.</p>",
		`<meta property=og:type content=article><title>Wheels - Site</title><main><h1>Wheels</h1><p class=byline>By <a rel=author href=/j>Jane Doe</a>, <time datetime=2024-05-06>May 6, 2024</time></p><p class=z>` + prose + "</main>",
		"<main><h1>Things</h1><ul>" + strings.Repeat("<li><a href=/a>A thing of note</a>", 20) + "</ul><p class=z>End of it.</p></main>",
	} {
		alone, err := HTML(t.Context(), []byte(doc), "https://example.com/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := HTML(t.Context(), []byte(doc), "https://example.com/a", &Options{Rules: rulesOf(t, ".z", ".p, ul, h1, .byline, header, time")})
		if err != nil {
			t.Fatal(err)
		}
		a, b := alone.Page.Clone(), res.Page.Clone()
		if len(b.Blocks) == 0 {
			t.Fatal("no content")
		}
		a.Blocks, b.Blocks, a.Language, b.Language = nil, nil, "", ""
		if d := cmp.Diff(a, b); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(alone.Links, res.Links); d != "" {
			t.Error(d)
		}
	}
}

func TestRulesComments(t *testing.T) {
	doc := "<title>T</title><main><article><p>" + strings.Repeat(prose+"</p><p>", 3) + `</p></article><div id=comments class=comments-area><h2>2 thoughts</h2>
<ol class=comment-list><li class=comment><div class=comment-author>Ann</div><div class=comment-content><p>Well said.</p></div><div class=comment-reply><a class=comment-reply-link href=#r>Reply</a></div></li>
<li class=comment><p>No.</p> <a class=comment-reply-link href=#r>Reply</a></li></ol><div id=respond class=comment-respond><h3>Leave a reply</h3><form><p>Your name</p></form></div></div></main>`
	r, err := NewRules(&RulesOptions{Comments: true})
	if err != nil || r.Fingerprint() == "" {
		t.Fatal(err)
	}
	res, err := HTML(t.Context(), []byte(doc), "https://example.com/a", &Options{Rules: r})
	if err != nil {
		t.Fatal(err)
	}
	text := res.Page.Text()
	for _, s := range []string{"The text of the page", "2 thoughts", "Ann", "Well said.", "No."} {
		if !strings.Contains(text, s) {
			t.Errorf("%q is missing in %s", s, text)
		}
	}
	for _, s := range []string{"Reply", "Leave", "Your name"} {
		if strings.Contains(text, s) {
			t.Errorf("%q is in %s", s, text)
		}
	}
	if len(res.Kept) != 1 || res.Kept[0].Reason != "comments" {
		t.Errorf("%+v", res.Kept)
	}
	r, err = NewRules(&RulesOptions{Comments: true, Drop: []string{".comment-list"}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err = HTML(t.Context(), []byte(doc), "https://example.com/a", &Options{Rules: r}); err != nil || strings.Contains(res.Page.Text(), "Well said") || !strings.Contains(res.Page.Text(), "2 thoughts") {
		t.Errorf("%v %s", err, res.Page.Text())
	}
}

func TestRulesFragment(t *testing.T) {
	doc := `<p>One <b class=x>two</b></p><div class=sharedaddy><p class=y>three</p><p>four</p></div><div class=z><p>five</p><p class=y>six</p></div><div hidden><p class=w>seven</p><p>eight</p></div>`
	for _, c := range []struct{ keep, drop, want string }{
		{"", "", "One two|five|six"},
		{"", "b", "One|five|six"},
		{".y", ".z", "One two|three|six"},
		{".w", "", "One two|five|six|seven"},
		{"", "body", ""},
		{".z", "html", "five|six"},
		{".sharedaddy", "p", ""},
		{".sharedaddy", ".y", "One two|four|five"},
	} {
		blocks, err := Fragment(t.Context(), []byte(doc), "https://example.com/", &Options{Rules: rulesOf(t, c.keep, c.drop)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(millrace.Text(blocks), "\n\n", "|"); got != c.want {
			t.Errorf("keep %s, drop %s: %q, want %q", c.keep, c.drop, got, c.want)
		}
	}
}

func TestRulesFingerprint(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range []RulesOptions{
		{},
		{Keep: []string{"a"}},
		{Drop: []string{"a"}},
		{Keep: []string{"a", "b"}},
		{Keep: []string{"a"}, Drop: []string{"b"}},
		{Keep: []string{"a b"}},
		{Comments: true},
	} {
		r, err := NewRules(&o)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Fingerprint()
		if seen[f] || len(f) > 13 {
			t.Errorf("%+v: %q", o, f)
		}
		seen[f] = true
	}
	if f := (*Rules)(nil).Fingerprint(); f != "" {
		t.Errorf("no rules: %q", f)
	}
}

// A kept element is content with its whole subtree, except elements that are never content.
func TestRulesKeepSubtree(t *testing.T) {
	doc := `<title>T</title><main><p>` + prose + `</p></main><aside><nav><a href=/a>One</a></nav><div class="social share">Two</div><div hidden>Hidden</div><script>Script</script>
<form><p>Form</p></form><div class=yarpp>Plugin</div><section class=comments>Three</section><footer>Four</footer></aside>`
	res, err := HTML(t.Context(), []byte(doc), "https://example.com/", &Options{Rules: rulesOf(t, "aside", "")})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(res.Page.Text(), "\n\n", "|"); got != prose+"|One|Two|Three|Four" {
		t.Error(got)
	}
}

// The result reports idle rules: those that match no element, or only elements that another rule
// decides.
func TestRulesIdle(t *testing.T) {
	r, err := NewRules(&RulesOptions{Keep: []string{".x", "p.y"}, Drop: []string{"p.y", "#none", "script", "h2"}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := HTML(t.Context(), []byte("<h2>Wheels</h2><p class=y>The wheel turns.</p><script>x</script>"), "https://example.com/", &Options{Rules: r})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"keep .x", "drop p.y", "drop #none", "drop script"}; !slices.Equal(res.UnmatchedRules, want) {
		t.Errorf("%q, want %q", res.UnmatchedRules, want)
	}
}

func TestCheckSelector(t *testing.T) {
	for s, ok := range map[string]bool{"div > p.x": true, "h2, h3": true, "": false, "a:hover": false, "p,": false, "a[href": false} {
		if err := CheckSelector(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
}
