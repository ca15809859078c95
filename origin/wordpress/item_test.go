package wordpress

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/jsonio"
)

func testSite(t testing.TB) (*Site, *site) {
	t.Helper()
	s, err := New(&http.Client{}, "https://mill.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	u := func(path string) *url.URL { return &url.URL{Scheme: "https", Host: "mill.example", Path: path} }
	return s, &site{api: u("/wp-json/"), home: u("/"), at: u("/"), lang: "en-GB", rules: "r"}
}

func TestConvert(t *testing.T) {
	s, f := testSite(t)
	const rest = `"id":7,"date_gmt":"2025-01-02T03:04:05","modified_gmt":"2026-01-02T03:04:05"`
	for name, tt := range map[string]struct {
		item string
		want millrace.Page
	}{
		"everything": {
			`{"title":{"rendered":"Leats &#038; <em>sluices<\/em> &lt;b&gt;"},"content":{"rendered":"<p>Water.<\/p>"},
			"excerpt":{"rendered":"<p>On&nbsp;water &hellip; in short.<\/p>\n"},
			"_embedded":{"author":[{"name":"M&uuml;ller","slug":"login"}],"wp:term":[
				[{"name":"Stone &amp; Iron","slug":"stone","taxonomy":"category"},{"name":"Water","slug":"water","taxonomy":"category"}],
				{"code":"rest_forbidden","message":"x"},
				[{"name":"wheel","slug":"wheel","taxonomy":"post_tag"},{"name":"Aside","slug":"post-format-aside","taxonomy":"post_format"}]]}}`,
			millrace.Page{
				Title: "Leats & sluices <b>", Summary: "On water … in short.", Description: "On water … in short.",
				Author: "Müller", Section: "Stone & Iron", Tags: []string{"Water", "wheel"}, Language: "en-GB", Known: fields | millrace.FieldAuthor | millrace.FieldLanguage,
			},
		},
		"of the plugin Yoast": {
			`{"title":{"rendered":"A"},"content":{"rendered":"<p>Water."},
			"yoast_head_json":{"description":"About &amp; more","og_locale":"de_CH","robots":{"index":"noindex","follow":"follow"}}}`,
			millrace.Page{
				Title: "A", Description: "About & more", Section: "Posts", Language: "de-CH", Access: millrace.Access{NoIndex: true},
				Known: fields | millrace.FieldLanguage,
			},
		},
		"of a plugin that says nothing": {
			`{"title":{"rendered":"A"},"content":{"rendered":"<p>Water."},"yoast_head_json":[]}`,
			millrace.Page{Title: "A", Section: "Posts", Language: "en-GB", Known: fields | millrace.FieldLanguage},
		},
		"an address as a name": {
			`{"title":{"rendered":"A"},"content":{"rendered":"<p>Water."},"_embedded":{"author":[{"name":"a@mill.example","slug":"a"}]}}`,
			millrace.Page{Title: "A", Section: "Posts", Language: "en-GB", Known: fields | millrace.FieldLanguage | millrace.FieldAuthor},
		},
		"an author who is closed": {
			`{"title":{"rendered":"A"},"content":{"rendered":"<p>Water."},"_embedded":{"author":[{"code":"rest_user_cannot_view"}]}}`,
			millrace.Page{Title: "A", Section: "Posts", Language: "en-GB", Known: fields | millrace.FieldLanguage},
		},
		"no category": {
			`{"title":{"rendered":"A"},"content":{"rendered":"<p>Water."},
			"_embedded":{"wp:term":[[{"name":"Allgemein","slug":"uncategorized","taxonomy":"category"}]]}}`,
			millrace.Page{Title: "A", Section: "Posts", Language: "en-GB", Known: fields | millrace.FieldLanguage},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var it item
			if err := jsonio.Unmarshal([]byte(`{`+rest+`,`+tt.item[1:]), nil, &it); err != nil {
				t.Fatal(err)
			}
			got, err := s.convert(t.Context(), f, postType{slug: "post", name: "Posts"}, it, "https://mill.example/a/")
			if err != nil {
				t.Fatal(err)
			}
			tt.want.URL, tt.want.Kind, tt.want.Detail = "https://mill.example/a/", millrace.Article, millrace.DetailBlocks
			tt.want.Published = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
			tt.want.Modified = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			tt.want.Blocks = []millrace.Block{{Type: millrace.TextBlock, Text: "Water."}}
			if d := cmp.Diff(&tt.want, got); d != "" {
				t.Error("(-want +got):\n" + d)
			}
		})
	}
}

// Data that protocols derive from the content is part of the page.
func TestConvertExtra(t *testing.T) {
	s, f := testSite(t)
	var err error
	s.rules, err = extract.NewRules(&extract.RulesOptions{Extra: map[string]extract.Extra{
		"note": {Prefix: "data-note-", Make: func(_ context.Context, d *extract.Document) (json.RawMessage, error) {
			return json.Marshal(d.Page.URL)
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{`<p data-note-x=\"y\">Water.`: `"https://mill.example/a/"`, "<p>Water.": ""} {
		var it item
		if err := json.Unmarshal([]byte(`{"title":{"rendered":"A"},"content":{"rendered":"`+content+`"}}`), &it); err != nil {
			t.Fatal(err)
		}
		p, err := s.convert(t.Context(), f, postType{slug: "post"}, it, "https://mill.example/a/")
		if err != nil || string(p.Extra["note"]) != want || !p.Known.Has(fields|millrace.FieldExtra) {
			t.Errorf("%s: %s, known %b, %v", content, p.Extra["note"], p.Known, err)
		}
	}
}

func TestOwnExcerpt(t *testing.T) {
	for _, tt := range []struct{ excerpt, content, want string }{
		{"<p>About mills.</p>", "<p>Water runs.</p>", "About mills."},
		{"<p>Water runs. The [&hellip;]</p>", "<p>Water runs.</p><p>The wheel turns.</p>", ""},
		{"<p>Water runs. The&hellip;</p>", "<p>Water runs.</p><p>The wheel turns.</p>", ""},
		{"<p>Water runs.</p>", "<p>Water runs.</p><p>The wheel turns.</p>", ""},
		{`<p>All about it <a class="more-link" href="/a/">Read</a></p>`, "<p>Water runs.</p>", ""},
		{"<p>Water runs. The wheel turns.</p>", "<p>Water runs.</p><figure><figcaption>A mill</figcaption></figure><p>The wheel turns.</p>", ""},
		{"<p>Turns the wheel.</p>", "<p>Water runs.</p><p>The wheel turns.</p>", "Turns the wheel."},
		{"<p>The wheel</p>", "<p>Water runs and runs.</p><p>The wheel turns.</p>", "The wheel"},
		{"<p>An excerpt alone.</p>", "", "An excerpt alone."},
		{"", "<p>Water.</p>", ""},
	} {
		if got := ownExcerpt(tt.excerpt, tt.content); got != tt.want {
			t.Errorf("of %q and %q: %q, want %q", tt.excerpt, tt.content, got, tt.want)
		}
	}
}

func TestDropShortcodes(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"<p>See [1], [sic], [a link] and [Fig. 2].</p>", "<p>See [1], [sic], [a link] and [Fig. 2].</p>"},
		{"<p>[vc_row][vc_column width=&#8221;1/2&#8243;]Text[/vc_column][/vc_row]</p>", "<p>Text</p>"},
		{`<p>[contact-form-7 id="12" title="A form"]</p>`, "<p></p>"},
		{"<p>[box]Kept[/box]</p>", "<p>Kept</p>"},
		{"<p>[gallery]</p>", "<p></p>"},
		{"<p>a < b [gallery ids='1,2'] &amp; c</p>", "<p>a &lt; b  &amp; c</p>"},
		{"<pre>a[i_j] = [gallery ids=\"1\"]</pre><code>[x_y]</code>", "<pre>a[i_j] = [gallery ids=\"1\"]</pre><code>[x_y]</code>"},
		{`<a title="[x_y]" href="/[a_b]">t</a>`, `<a title="[x_y]" href="/[a_b]">t</a>`},
		{"no brackets < at all", "no brackets < at all"},
	} {
		if got := dropShortcodes(tt.in); got != tt.want {
			t.Errorf("of %q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a  b\n": "a b", "&lt;b&gt; &amp;amp; <i>c</i>": "<b> &amp; c", "a<br>b<script>x</script> c": "a b c", "1 < 2": "1 < 2", "&#8217;": "’",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzItems(f *testing.F) {
	f.Add(`[{"id":7,"link":"https://mill.example/a/","title":{"rendered":"A &amp; <b>b</b>"},"content":{"rendered":"<p>[x_y a=\"1\"]Water[/x_y]"},"excerpt":{"rendered":"E"}}]`)
	f.Add(`[{"_embedded":{"author":[{}],"wp:term":[{},[{"name":"n","taxonomy":"category"}]]},"yoast_head_json":{"robots":{"index":"noindex"}}}]`)
	f.Add("<br />\n<b>Warning</b>")
	f.Fuzz(func(t *testing.T, body string) {
		s, site := testSite(t)
		var items []item
		if decode("https://mill.example/wp-json/wp/v2/posts", []byte(body), 1<<20, &items) != nil {
			return
		}
		for _, it := range items {
			_, _ = s.underRoot(site, it.Link)
			p, err := s.convert(t.Context(), site, postType{slug: "post"}, it, "https://mill.example/a/")
			if err != nil {
				continue
			}
			if strings.ContainsAny(p.Title+p.Summary+p.Author+p.Section, "\n\t") {
				t.Errorf("a field of several lines: %+v", p)
			}
		}
	})
}

func FuzzDropShortcodes(f *testing.F) {
	f.Add("<p>[a_b]x[/a_b] [c d=\"e\"] [1]</p><pre>[x_y]")
	f.Add("[gallery")
	f.Fuzz(func(t *testing.T, s string) {
		once := dropShortcodes(s)
		if !strings.Contains(s, "[") && once != s {
			t.Errorf("%q has become %q", s, once)
		}
		if len(once) > 6*len(s) {
			t.Errorf("%q has grown to %q", s, once)
		}
	})
}

func FuzzHead(f *testing.F) {
	f.Add(`<html lang="en"><link rel="https://api.w.org/" href="/wp-json/"><meta name=robots content="none">`, `//mill.example/wp-json`)
	f.Fuzz(func(_ *testing.T, body, ref string) {
		h := readHead(&http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1})
		if h.lang != "" && !language.MatchString(h.lang) {
			panic(h.lang)
		}
		if u, err := apiAt(&url.URL{Scheme: "https", Host: "mill.example", Path: "/"}, ref); err == nil && (u.Hostname() != "mill.example" || u.Scheme != "https") {
			panic(u.String())
		}
	})
}
