package extract

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
)

// soup is a site as page builders make them: all elements are of the same two
// kinds, and their classes say nothing.
type soup struct {
	pages []soupPage
	r     *rand.Rand
}

type soupPage struct{ url, html, want string }

var soupWords = strings.Fields(`mill race water wheel stone grain flour sluice gate river bank oak beam gear tooth shaft bearing grease winter frost
	summer drought spring flood miller apprentice sack cart horse road village market price measure weight bread oven crust baker ledger`)

func (s *soup) sentence(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(soupWords[s.r.IntN(len(soupWords))])
	}
	return strings.ToUpper(b.String()[:1]) + b.String()[1:] + fmt.Sprint(" ", s.r.IntN(1_000_000), ".")
}

// newSoup makes a site of n pages.
func newSoup(n int, seed uint64) *soup {
	s := &soup{r: rand.New(rand.NewPCG(seed, 1))}
	titles := make([]string, n)
	for i := range titles {
		titles[i] = strings.TrimSuffix(s.sentence(4), ".")
	}
	authors := []string{
		`<div class="e e17"><div class="t">Ada Miller</div><div class="t">Ada has ground flour for thirty years, at four rivers and in two countries, and still gets up at five.</div></div>`,
		`<div class="e e18"><div class="t">Ben Weir</div><div class="t">Ben builds wheels of oak and of larch, and writes about those that others have built before him.</div></div>`,
	}
	letter := `<div class="e e12"><div class="t">Our letter</div><div class="t">Twice a month we write to you of what the water did, what the stones did, and what the bread was like.</div></div>`
	for i, title := range titles {
		var html, want []string
		sections := 1 + s.r.IntN(5)
		for j := range sections {
			size := 1 + s.r.IntN(3)
			if j == 0 && i%3 == 0 {
				size = 14 // which carries most of the page, but is not all of it
			}
			var part strings.Builder
			for range size {
				text := s.sentence(20 + s.r.IntN(30))
				fmt.Fprintf(&part, `<div class="t">%s</div>`, text)
				want = append(want, text)
			}
			html = append(html, fmt.Sprintf(`<div class="e x%d">%s</div>`, s.r.IntN(1<<20), part.String()))
			if j == sections/2 {
				html = append(html, letter)
			}
		}
		html = append(html, authors[i%2])
		var related strings.Builder
		for range 3 {
			j := s.r.IntN(n)
			fmt.Fprintf(&related, `<div class="e"><a href="/p%d">%s</a></div>`, j, titles[j])
		}
		s.pages = append(s.pages, soupPage{
			url:  fmt.Sprintf("https://example.com/p%d", i),
			want: strings.Join(want, "\n\n"),
			html: fmt.Sprintf(`<!DOCTYPE html><title>%s</title><body><div class="e e1"><div class="e e2"><div class="t">Mill and race</div><div class="t">Open all days but Mondays, from the first of March until the river freezes over again.</div></div>
<div class="e e3"><div class="e e4"><h1>%s</h1></div><div class="e e5" id="n%d">%s</div><div class="e e6"><div class="t">See too</div>%s</div></div></div>`,
				title, title, s.r.IntN(1<<20), strings.Join(html, "\n"), related.String()),
		})
	}
	return s
}

func learn(t testing.TB, pages []soupPage, o *Options) *Template {
	t.Helper()
	l := &Learner{}
	for _, p := range pages {
		if err := l.Add(t.Context(), []byte(p.html), p.url, o); err != nil {
			t.Fatal(err)
		}
	}
	return l.Template()
}

func templateRules(t testing.TB, tm *Template, keep ...string) *Rules {
	t.Helper()
	r, err := NewRules(&RulesOptions{Template: tm, Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func extracted(t *testing.T, p soupPage, r *Rules) *Result {
	t.Helper()
	res, err := HTML(t.Context(), []byte(p.html), p.url, &Options{Rules: r})
	if err != nil {
		t.Fatal(err)
	}
	checkBlocks(t, res.Page.Blocks)
	return res
}

// A page alone leaks and loses; the template of the site makes all exact, those
// too that it was not learned from.
func TestLearnSoup(t *testing.T) {
	for seed := range uint64(5) {
		s := newSoup(60, seed)
		tm := learn(t, s.pages[:30], nil)
		if tm == nil {
			t.Fatal("nothing learned")
		}
		r := templateRules(t, tm)
		exact, bad := 0, 0
		for _, p := range s.pages {
			if extracted(t, p, nil).Page.Text() == p.want {
				exact++
			}
			res := extracted(t, p, r)
			if d := cmp.Diff(p.want, res.Page.Text()); d != "" {
				if bad++; bad < 3 {
					t.Errorf("seed %d, %s, root %s: %s", seed, p.url, res.Root, d)
				}
			}
		}
		t.Logf("seed %d: %d of %d pages are exact alone; %d are not with %+v", seed, exact, len(s.pages), bad, tm)
		if exact > len(s.pages)/2 {
			t.Errorf("%d pages are exact alone: the test shows nothing", exact)
		}
	}
}

var update = flag.Bool("update", false, "write what golden files want")

// TestLearnGolden shows one page of such a site, what is learned of 12, and what
// that changes.
func TestLearnGolden(t *testing.T) {
	s := newSoup(12, 42)
	tm := learn(t, s.pages, nil)
	template, err := json.MarshalIndent(tm, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	p := s.pages[4]
	alone, res := extracted(t, p, nil), extracted(t, p, templateRules(t, tm))
	told, err := json.MarshalIndent(map[string]any{"root": res.Root, "kept": res.Kept, "dropped": res.Dropped}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got := txtar.Format(&txtar.Archive{Files: []txtar.File{
		{Name: "page.html", Data: []byte(p.html + "\n")},
		{Name: "template.json", Data: append(template, '\n')},
		{Name: "alone.md", Data: []byte(alone.Page.Markdown() + "\n")},
		{Name: "learned.md", Data: []byte(res.Page.Markdown() + "\n")},
		{Name: "told.json", Data: append(told, '\n')},
	}})
	name := filepath.Join("testdata", "learn", "soup.txtar")
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
}

// The order of the pages does not matter, nor do pages that were there already.
func TestLearnOrder(t *testing.T) {
	s := newSoup(70, 7)
	want := learn(t, s.pages, nil)
	if want.Pages != maxLearned {
		t.Errorf("learned from %d pages", want.Pages)
	}
	for range 3 {
		s.r.Shuffle(len(s.pages), func(i, j int) { s.pages[i], s.pages[j] = s.pages[j], s.pages[i] })
		if d := cmp.Diff(want, learn(t, append(s.pages, s.pages[:20]...), nil)); d != "" {
			t.Error(d)
		}
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var read *Template
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, read); d != "" {
		t.Error(d)
	}
	if a, b := templateRules(t, want).Fingerprint(), templateRules(t, read).Fingerprint(); a != b || a == "" || len(a) > 13 {
		t.Errorf("fingerprints %q, %q", a, b)
	}
}

// plainSite makes pages of one form that each says enough alone. extra comes
// before the end of the text.
func plainSite(n int, extra func(i int) string) []soupPage {
	s := newSoup(1, 3)
	var pages []soupPage
	for i := range n {
		var b strings.Builder
		for range 4 {
			fmt.Fprintf(&b, "<p>%s</p>", s.sentence(30))
		}
		pages = append(pages, soupPage{
			url:  fmt.Sprintf("https://example.com/%d.html", i),
			html: fmt.Sprintf("<title>Page %d</title><nav><a href=/>Home</a></nav><main id=text><h1>Page %d</h1>%s%s<p>%s</p></main>", i, i, &b, extra(i), s.sentence(30)),
		})
	}
	return pages
}

func TestLearnNothing(t *testing.T) {
	none := func(int) string { return "" }
	if tm := learn(t, plainSite(9, none), nil); tm != nil {
		t.Errorf("9 pages: %+v", tm)
	}
	ten := plainSite(10, none)
	tm := learn(t, ten, nil)
	if d := cmp.Diff(&Template{Pages: 10, Root: "main", RootPages: 10, Repeated: []Repeated{}}, tm); d != "" {
		t.Error(d)
	}
	if f := templateRules(t, tm).Fingerprint(); f != "" {
		t.Errorf("nothing to correct, and the fingerprint %q", f)
	}
	same := append(plainSite(9, none), plainSite(1, none)...)
	same[9].url = "https://example.com/again.html"
	if tm := learn(t, same, nil); tm != nil {
		t.Errorf("a page counts twice: %+v", tm)
	}
	same[9].html = strings.Replace(same[9].html, "</main>", "<p>Printed with care.</p></main>", 1)
	if tm := learn(t, same, nil); tm != nil {
		t.Errorf("a page with nearly the same text counts twice: %+v", tm)
	}
	l := &Learner{}
	for i := range 20 {
		for _, html := range []string{
			"<title>Log in</title><form><input type=password></form>", "<body class='archive category'><main><h2><a href=/a>a</a></h2><h2><a href=/b>b</a></h2><h2><a href=/c>c</a></h2></main>", "",
		} {
			if err := l.Add(t.Context(), []byte(html), fmt.Sprintf("https://example.com/%d/%d", i, len(html)), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(l.pages) > 0 {
		t.Errorf("%d pages without content are remembered", len(l.pages))
	}
	if err := l.Add(t.Context(), []byte("%PDF-1.7"), "https://example.com/a.pdf", nil); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
}

// visit is what stands on some pages of a site.
const visit = `<div class=box><div>Come and see us</div><div>The mill is open on all days but Mondays, and there is bread.</div></div>`

func TestLearnParts(t *testing.T) {
	for _, c := range []struct {
		name  string
		extra func(i int) string
		parts int
	}{
		{"on all pages", func(int) string { return visit }, 1},
		{"on a fifth", func(i int) string { return map[bool]string{true: visit}[i%5 == 0] }, 1},
		{"on less", func(i int) string { return map[bool]string{true: visit}[i%7 == 0] }, 0},
		{"inside another", func(int) string { return "<div><div>More</div>" + visit + "</div>" }, 1},
		{"twice on each", func(int) string {
			return strings.Repeat("<div><div>Returns</div><div>none</div></div><p>between</p>", 2)
		}, 0},
		{"in words of their own", func(i int) string { return strings.Replace(visit, "Mondays", fmt.Sprint(i), 1) }, 0},
		{"one text", func(int) string {
			return "<div class=box>The mill is open on all days but Mondays, and there is bread.</div>"
		}, 0},
		{"a paragraph", func(int) string { return "<p>The mill is open on all days.</p><p>There is bread.</p>" }, 0},
		{"a table", func(int) string {
			return "<div><table><tr><th>Day<th>Open<tr><td>Monday<td>no<tr><td>Tuesday<td>yes</table></div>"
		}, 0},
		{"in a cell", func(i int) string {
			return fmt.Sprintf("<table><tr><th>Page<th>What<tr><td>%d<td>%s<tr><td>x<td>y</table>", i, visit)
		}, 0},
		{"code", func(int) string {
			return "<div><div>Build it</div><div>as always</div><pre>make\nmake install</pre></div>"
		}, 0},
		{"a call-out", func(int) string {
			return `<div class="admonition note"><p class=admonition-title>Note</p><p>Mind the wheel.</p></div>`
		}, 0},
		{"headings", func(int) string { return "<div><h2>The wheel</h2><h3>How it turns</h3></div>" }, 0},
		{"a heading of what follows", func(int) string { return "<div><div>Some words of it</div><h2>The wheel</h2></div>" }, 0},
		{"facts", func(int) string { return "<ul><li>oak</li><li>iron</li><li>stone</li></ul>" }, 0},
		{"links", func(int) string { return "<ul><li><a href=/a>The wheel</a></li><li><a href=/b>The race</a></li></ul>" }, 1},
		{"notes", func(int) string { return "<div class=footnotes><div>Some note</div><div>Other note</div></div>" }, 0},
	} {
		pages := plainSite(20, c.extra)
		tm := learn(t, pages, nil)
		if len(tm.Repeated) != c.parts {
			t.Errorf("%s: %+v", c.name, tm.Repeated)
		}
		r := templateRules(t, tm)
		if (r.Fingerprint() != "") != (c.parts > 0) {
			t.Errorf("%s: fingerprint %q", c.name, r.Fingerprint())
		}
		for i, p := range pages {
			alone, res := extracted(t, p, nil), extracted(t, p, r)
			part := c.extra(i) != "" && c.parts > 0
			if part != (alone.Page.Text() != res.Page.Text()) {
				t.Errorf("%s, page %d: the text changes", c.name, i)
			}
			if found := slices.ContainsFunc(res.Dropped, func(d Dropped) bool { return d.Reason == fromTemplate }); part && !found && c.name != "links" {
				t.Errorf("%s, page %d: %+v", c.name, i, res.Dropped)
			}
		}
	}
}

// Of documentation, a part of the template is on half of the pages, and never
// one of several sections.
func TestLearnManual(t *testing.T) {
	for name, c := range map[string]struct {
		extra func(i int) string
		parts int
	}{
		"on a third": {func(i int) string { return map[bool]string{true: visit}[i%3 == 0] }, 0},
		"on half":    {func(i int) string { return map[bool]string{true: visit}[i%2 == 0] }, 1},
		"sections": {func(i int) string {
			return fmt.Sprintf("<div class=sect><h2>Use</h2><p>Turn it %d times.</p></div><div class=sect><h2>Returns</h2><p>None, as all of them.</p></div>", i)
		}, 0},
	} {
		pages := plainSite(20, c.extra)
		for i := range pages {
			pages[i].html = `<meta name=generator content="Sphinx 7">` + pages[i].html
		}
		if tm := learn(t, pages, nil); len(tm.Repeated) != c.parts {
			t.Errorf("%s: %+v", name, tm.Repeated)
		}
	}
}

// A page that is little more than a part of the template keeps it, and so does
// one that a rule keeps it on.
func TestTemplateReversed(t *testing.T) {
	tm := learn(t, plainSite(20, func(int) string { return visit }), nil)
	about := soupPage{url: "https://example.com/about.html", html: "<title>About</title><main id=text><h1>About</h1>" + visit + "</main>"}
	if text := extracted(t, about, templateRules(t, tm)).Page.Text(); !strings.Contains(text, "there is bread") {
		t.Errorf("nothing is left: %q", text)
	}
	page := plainSite(1, func(int) string { return visit })[0]
	r := templateRules(t, tm)
	if text := extracted(t, page, r).Page.Text(); strings.Contains(text, "there is bread") {
		t.Error("the part stays")
	}
	res := extracted(t, page, templateRules(t, tm, tm.Repeated[0].Selector))
	if d := cmp.Diff(extracted(t, page, nil).Page.Text(), res.Page.Text()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Kept{{"main#text div.box", "keep div.box", 17}}, res.Kept); d != "" {
		t.Error(d)
	}
}

func TestTemplateRoot(t *testing.T) {
	text := func(n int) string {
		return strings.Repeat("<p>Wheel and water and stone and grain, day by day.</p>", n)
	}
	r := templateRules(t, &Template{Root: "div.text", Differs: 1})
	for _, c := range []struct {
		name, html, root, kept, dropped string
	}{
		{"larger", "<div class=text><div>One two.</div><div class=x>" + text(20) + "</div></div>", "div.text", "", ""},
		{"much larger", "<div class=text><div>" + text(4) + "</div><main>" + text(8) + "</main></div>", "div.text", "body div.text 40", ""},
		{"too large", "<div class=text><div>" + text(20) + "</div><main>" + text(4) + "</main></div>", "", "", ""},
		{"smaller", "<main>" + text(1) + "<div class=text>" + text(20) + "</div></main>", "div.text", "", "body p 10"},
		{"too small", "<main>" + text(5) + "<div class=text>" + text(5) + "</div></main>", "main", "", ""},
		{"elsewhere", "<main>" + text(5) + "</main><div class=text>" + text(1) + "</div>", "main", "", ""},
		{"two", "<main>" + text(1) + "<div class=text>" + text(20) + "</div><div class=text>x</div></main>", "main", "", ""},
		{"none", "<main>" + text(1) + "<div>" + text(20) + "</div></main>", "main", "", ""},
		{"left out", "<main>" + text(5) + "</main><nav><div class=text><a href=x>x</a></div></nav>", "main", "", ""},
	} {
		res := extracted(t, soupPage{url: "https://example.com/", html: "<title>T</title><body>" + c.html}, r)
		if c.root != "" && !strings.HasSuffix(res.Root, c.root) {
			t.Errorf("%s: root %s", c.name, res.Root)
		}
		kept, dropped := "", ""
		for _, k := range res.Kept {
			kept += fmt.Sprint(k.Selector, " ", k.Words)
		}
		for _, d := range res.Dropped {
			if d.Reason == fromTemplate {
				dropped += fmt.Sprint(d.Selector, " ", d.Words)
			}
		}
		if c.root != "" && (c.kept != "" && kept != c.kept || dropped != c.dropped) {
			t.Errorf("%s: kept %s, dropped %s", c.name, kept, dropped)
		}
	}
	for _, tm := range []*Template{{Root: "a::b", Differs: 1}, {Repeated: []Repeated{{Hash: "-"}}}, {Repeated: make([]Repeated, 300)}} {
		if _, err := NewRules(&RulesOptions{Template: tm}); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%+v: %v", tm, err)
		}
	}
}

// Rules of the owner hold while a site is learned.
func TestLearnWithRules(t *testing.T) {
	pages := plainSite(20, func(int) string { return visit })
	if tm := learn(t, pages, &Options{Rules: rulesOf(t, "", ".box")}); len(tm.Repeated) > 0 {
		t.Errorf("%+v", tm)
	}
}

// A root is what most pages lead to, or what holds the same with less around
// it; where that would lose a text that only one page has, there is none.
func TestLearnRoot(t *testing.T) {
	motto := "<p>Whoever comes to the mill first grinds first, and whoever comes last sweeps the floor and shuts the gate, as it was with our fathers.</p>"
	for _, c := range []struct {
		name, before string
		own          bool // what stands before is each page's own
		root         string
		differs      int
	}{
		{"what all lead to", "", false, "div.a", 0},
		{"tighter", motto, false, "div.b", 20},
		{"with text of its own before", motto, true, "div.a", 0},
	} {
		s := newSoup(1, 9)
		var pages []soupPage
		for i := range 20 {
			before := c.before
			if c.own {
				before += "<p>" + s.sentence(12) + "</p>"
			}
			var text strings.Builder
			for range 4 {
				fmt.Fprintf(&text, "<p>%s</p>", s.sentence(25))
			}
			pages = append(pages, soupPage{url: fmt.Sprintf("https://example.com/%d", i), html: fmt.Sprintf("<title>Page</title><body><div class=a>%s<div class=b>%s</div></div>", before, &text)})
		}
		tm := learn(t, pages, nil)
		if tm.Root != c.root || tm.Differs != c.differs || tm.RootPages != 20 {
			t.Errorf("%s: %+v", c.name, tm)
		}
		for _, p := range pages {
			text := extracted(t, p, templateRules(t, tm)).Page.Text()
			if got := strings.Contains(text, "Whoever"); got != c.own {
				t.Errorf("%s: the motto is in: %t", c.name, got)
			}
		}
	}
}
