package extract

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// forms returns an Extra that reports the number of forms and the title of a document.
func forms(version int) map[string]Extra {
	return map[string]Extra{"note": {Version: version, Prefix: "data-note-", Forms: true, Make: func(_ context.Context, d *Document) (json.RawMessage, error) {
		return json.Marshal([]any{len(d.Forms), d.Page.Title, d.Base.String(), d.Content != nil})
	}}}
}

func extraRules(t *testing.T, o *RulesOptions) *Rules {
	t.Helper()
	r, err := NewRules(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExtra(t *testing.T) {
	const text = "<h1>The mill</h1><p>The mill has stood at the ford for three hundred years, and still grinds what is brought to it.</p>"
	for name, c := range map[string]struct{ source, want string }{
		"nothing":          {"<main>" + text + "</main>", ""},
		"an attribute":     {"<main>" + text + "<p data-note-a></main>", `[0,"The mill","https://mill.example/a",true]`},
		"in capitals":      {"<main>" + text + "<p DATA-NOTE-a></main>", `[0,"The mill","https://mill.example/a",true]`},
		"nearly":           {"<main>" + text + "<p data-notes></main>", ""},
		"at the beginning": {"note-<main>" + text + "</main>", ""},
		"a base":           {`<base href="/b/">` + "<main>" + text + "<p data-note-a></main>", `[0,"The mill","https://mill.example/b/",true]`},
		"a form":           {"<main>" + text + "<form><input></form></main>", `[1,"The mill","https://mill.example/a",true]`},
		"no content form":  {"<header><form><input></form></header><main>" + text + "</main><footer><form></form></footer>", ""},
		"to search":        {"<main>" + text + "<form role=search><input></form></main>", ""},
		"hidden":           {"<main>" + text + "<form hidden><input></form><div style='display: none'><form><input></form></div></main>", ""},
		"of comments":      {"<main>" + text + "<div id=respond><form class=comment-form><textarea></textarea></form></div></main>", ""},
		"many":             {"<main>" + text + strings.Repeat("<form><input></form>", 300) + "</main>", `[100,"The mill","https://mill.example/a",true]`},
	} {
		rules := extraRules(t, &RulesOptions{Extra: forms(1)})
		res, err := HTML(t.Context(), []byte(c.source), "https://mill.example/a", &Options{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(res.Page.Extra["note"]); got != c.want || !res.Page.Known.Has(millrace.FieldExtra) || res.Failed != nil {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		plain, err := HTML(t.Context(), []byte(c.source), "https://mill.example/a", nil)
		if err != nil || plain.Page.Known.Has(millrace.FieldExtra) || plain.Page.Extra != nil {
			t.Errorf("%s: without rules the page has %v (%v)", name, plain.Page.Extra, err)
		}
		plain.Page.Extra, plain.Page.Known = res.Page.Extra, res.Page.Known
		if string(plain.Page.Canonical()) != string(res.Page.Canonical()) {
			t.Errorf("%s: an extra has changed the page", name)
		}
	}
}

func TestExtraFails(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		err   error
	}{
		"an error": {"", millrace.ErrTooLarge},
		"no JSON":  {"{", millrace.ErrInvalid},
	} {
		rules := extraRules(t, &RulesOptions{Extra: map[string]Extra{
			"bad": {Make: func(context.Context, *Document) (json.RawMessage, error) {
				if c.value == "" {
					return nil, c.err
				}
				return json.RawMessage(c.value), nil
			}},
			"good": {Make: func(context.Context, *Document) (json.RawMessage, error) { return json.RawMessage(`1`), nil }},
		}})
		res, err := HTML(t.Context(), []byte("<p>Text"), "https://mill.example/", &Options{Rules: rules})
		if err != nil || !errors.Is(res.Failed["bad"], c.err) || len(res.Page.Extra) != 1 || string(res.Page.Extra["good"]) != "1" {
			t.Errorf("%s: %v, %v, %v", name, res.Failed, res.Page.Extra, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	rules := extraRules(t, &RulesOptions{Extra: map[string]Extra{"note": {Make: func(context.Context, *Document) (json.RawMessage, error) {
		stop()
		return nil, nil
	}}}})
	if _, err := HTML(ctx, []byte("<p>Text"), "https://mill.example/", &Options{Rules: rules}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context was canceled: %v", err)
	}
	if _, err := NewRules(&RulesOptions{Extra: map[string]Extra{"note": {}}}); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("an extra without Make: %v", err)
	}
}

// The fingerprint changes with the version of an extra, so pages are extracted again.
func TestExtraFingerprint(t *testing.T) {
	none, one, two := extraRules(t, nil), extraRules(t, &RulesOptions{Extra: forms(1)}), extraRules(t, &RulesOptions{Extra: forms(2)})
	same := extraRules(t, &RulesOptions{Extra: forms(1)})
	if none.Fingerprint() != "" || one.Fingerprint() == "" || one.Fingerprint() == two.Fingerprint() || one.Fingerprint() != same.Fingerprint() {
		t.Errorf("%q %q %q", none.Fingerprint(), one.Fingerprint(), two.Fingerprint())
	}
}

// The document of an extra lacks the elements that rules drop. It distinguishes the content from
// the rest of the page.
func TestExtraDocument(t *testing.T) {
	seen := map[string]bool{}
	rules := extraRules(t, &RulesOptions{Drop: []string{".gone"}, Extra: map[string]Extra{"note": {Make: func(_ context.Context, d *Document) (json.RawMessage, error) {
		var visit func(n *html.Node)
		visit = func(n *html.Node) {
			if id := attr(n, "id"); id != "" {
				seen[id] = d.Skipped(n)
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				visit(c)
			}
		}
		visit(d.Tree)
		return nil, nil
	}}}})
	const source = `<nav id="nav"><a href="/">One two three</a></nav><main id="main"><p>The mill has stood at the ford for three hundred years.</p><p class="gone" id="gone">Words.</p></main>`
	if _, err := HTML(t.Context(), []byte(source), "https://mill.example/", &Options{Rules: rules}); err != nil {
		t.Fatal(err)
	}
	if skipped, there := seen["nav"]; !there || !skipped {
		t.Errorf("the menu: %v %v", there, skipped)
	}
	if skipped, there := seen["main"]; !there || skipped {
		t.Errorf("the content: %v %v", there, skipped)
	}
	if _, there := seen["gone"]; there {
		t.Error("the document contains a dropped element")
	}
}

// Elements that Prepare removes from the tree appear in no field of the page.
func TestExtraPrepare(t *testing.T) {
	extra := forms(1)
	e := extra["note"]
	e.Prepare = func(tree *html.Node) {
		if h := findTag(tree, atom.H1); h != nil {
			h.Parent.RemoveChild(h)
		}
	}
	extra["note"] = e
	rules := extraRules(t, &RulesOptions{Extra: extra})
	const source = "<h1>The old mill</h1><p>Water runs over the wheel from dawn until it is dark."
	for _, s := range []string{source, source + "<p data-note-a>"} {
		res, err := HTML(t.Context(), []byte(s), "https://mill.example/", &Options{Rules: rules})
		if err != nil || (s == source) != strings.Contains(string(res.Page.Canonical()), "old mill") {
			t.Errorf("%s: %+v, %v", s, res.Page, err)
		}
		p, err := Content(t.Context(), []byte(s), "https://mill.example/", &Options{Rules: rules})
		if err != nil || (s == source) != strings.Contains(p.Text(), "old mill") {
			t.Errorf("%s: %+v, %v", s, p, err)
		}
	}
}

func TestContent(t *testing.T) {
	rules := extraRules(t, &RulesOptions{Extra: forms(1)})
	p, err := Content(t.Context(), []byte("<p>Water.</p><form><input></form>"), "/a", &Options{Rules: rules, Base: "https://mill.example/"})
	if err != nil || p.URL != "/a" || len(p.Blocks) != 1 || p.Known != millrace.FieldContent|millrace.FieldExtra || string(p.Extra["note"]) != `[1,"","https://mill.example/a",true]` {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = Content(t.Context(), []byte("<p>Water."), "https://mill.example/a", nil)
	if err != nil || len(p.Blocks) != 1 || p.Known != millrace.FieldContent || p.Detail != millrace.DetailBlocks {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Content(t.Context(), nil, "nowhere", nil); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("no address: %v", err)
	}
}
