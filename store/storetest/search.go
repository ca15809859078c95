package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// search gives the identities of the pages that a view finds, best first.
func (f *fixture) search(v millrace.View, text string) []string {
	f.Helper()
	pages := []string{}
	for _, h := range f.ask(v, millrace.Query{Text: text, Limit: 1000}).Hits {
		pages = append(pages, relative(h.URL))
	}
	return pages
}

func (f *fixture) ask(v millrace.View, q millrace.Query) *millrace.Found {
	f.Helper()
	s, ok := v.(millrace.Searcher)
	if !ok {
		f.Fatal("the view cannot be searched")
	}
	found, err := s.Search(f.Context(), q)
	if err != nil {
		f.Fatalf("search %q: %v", q.Text, err)
	}
	for i, h := range found.Hits {
		if h.Relevance <= 0 || h.Relevance > 1 || i > 0 && h.Relevance > found.Hits[i-1].Relevance {
			f.Errorf("search %q: hit %d has relevance %v", q.Text, i, h.Relevance)
		}
		for _, m := range h.Marks {
			if m[0] < 0 || m[0] >= m[1] || m[1] > len(h.Snippet) {
				f.Errorf("search %q: hit %d marks %v of %q", q.Text, i, m, h.Snippet)
			}
		}
	}
	return found
}

func (f *fixture) index() {
	f.Helper()
	if err := f.site.Index(f.Context(), nil); err != nil {
		f.Fatalf("index: %v", err)
	}
}

// searchable opens the store with an index that is kept.
func (f *fixture) searchable() {
	f.Helper()
	f.reopen(func(c *store.Config) { c.Index = true })
	f.derive()
}

func searchCases() []testCase {
	return []testCase{
		{"a site that nobody has indexed cannot be searched", func(t *testing.T, f *fixture) {
			f.puts("/a")
			f.publish(0)
			for _, v := range []millrace.View{f.head(), f.published()} {
				if _, err := v.(millrace.Searcher).Search(t.Context(), millrace.Query{Text: "text"}); !errors.Is(err, millrace.ErrUnavailable) {
					t.Errorf("search: %v", err)
				}
			}
			f.index()
			want(f, "head", f.search(f.head(), "text"), set("/a"))
			want(f, "published", f.search(f.published(), "text"), set("/a"))
			f.puts("/b")
			if _, err := f.head().(millrace.Searcher).Search(t.Context(), millrace.Query{Text: "text"}); !errors.Is(err, millrace.ErrUnavailable) {
				t.Errorf("search what is not indexed yet: %v", err)
			}
		}},
		{"a page is found with its publication", func(t *testing.T, f *fixture) {
			f.searchable()
			f.apply(put(article("/a", "Herons stand in the millpond.")), put(article("/b", "Otters swim.")))
			first := f.publish(0)
			old := f.published()
			want(f, "first", len(f.search(old, "herons otters")), 2)
			f.apply(put(article("/a", "Kingfishers dive.")), gone("/b"), put(article("/c", "Herons fly.")))
			want(f, "before the next one", f.search(f.published(), "herons"), set("/a"))
			f.publish(first)
			v := f.published()
			for q, pages := range map[string][]string{"herons": set("/c"), "otters": set(), "kingfisher": set("/a")} {
				want(f, "then: "+q, f.search(v, q), pages)
			}
			for q, pages := range map[string][]string{"herons": set("/a"), "otter": set("/b"), "kingfisher": set()} {
				want(f, "the view before: "+q, f.search(old, q), pages)
			}
			f.reopen(nil)
			want(f, "after a restart", f.search(f.published(), "heron"), set("/c"))
			want(f, "what an index has no part in", f.paths(f.head(), millrace.Scan{}), set("/a", "/c"))
		}},
		{"every version that was published is searched as it was", func(t *testing.T, f *fixture) {
			f.searchable()
			var views []millrace.View
			from := uint64(0)
			for i := range 6 {
				f.apply(put(article("/a", fmt.Sprintf("The wheel number%d turns.", i))))
				f.apply(put(article("/a", fmt.Sprintf("The wheel number%d stands.", i))))
				from = f.publish(from)
				views = append(views, f.published())
			}
			for i, v := range views {
				for j := range views {
					want(f, fmt.Sprint("view ", i, " number ", j), len(f.search(v, fmt.Sprint(`"wheel number`, j, `"`))), map[bool]int{true: 1}[i == j])
				}
				want(f, "a state in between", f.search(v, `"turns"`), set())
			}
		}},
		{"sites do not find each other's pages", func(t *testing.T, f *fixture) {
			f.searchable()
			other := f.another("other", f.config)
			f.puts("/a")
			f.publish(0)
			if _, err := other.Apply(t.Context(), origin, []millrace.Change{put(article("/b", "Text of the other"))}); err != nil {
				t.Fatal(err)
			}
			if err := other.Publish(t.Context(), 0, 1, nil); err != nil {
				t.Fatal(err)
			}
			v, _, err := other.Published(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want(f, "this", f.search(f.published(), "text"), set("/a"))
			want(f, "the other", f.search(v, "text"), set("/b"))
		}},
		{"what nobody may see is not found", func(t *testing.T, f *fixture) {
			f.searchable()
			hidden := article("/hidden", "A secret sluice")
			hidden.Access.NoIndex = true
			list := article("/list", "A list of every sluice")
			list.Kind, list.Known = millrace.Archive, list.Known|millrace.FieldKind
			f.apply(put(hidden), put(list), put(article("/a", "A sluice")), put(article("/private/b", "A private sluice")))
			first := f.publish(0)
			want(f, "found", f.search(f.published(), "sluice"), set("/a", "/private/b"))
			f.reopen(func(c *store.Config) { c.Visibility.Exclude = []string{"/private"} })
			f.derive()
			_ = first // another configuration published it: it counts as none
			f.publish(0)
			want(f, "with another rule", f.search(f.published(), "sluice"), set("/a"))
		}},
		{"the order of writing does not show", func(t *testing.T, f *fixture) {
			f.searchable()
			rng := rand.New(rand.NewPCG(3, 5))
			other := f.another("other", f.config)
			words := strings.Fields("wheel stone grain water gate pond miller flour sack bolt hopper shaft")
			var batch []millrace.Change
			for i := range 40 {
				var text strings.Builder
				for range 30 {
					text.WriteString(words[rng.IntN(len(words))] + " ")
				}
				batch = append(batch, put(article(fmt.Sprintf("/p%02d", i), text.String())))
			}
			f.apply(batch...)
			f.publish(0)
			for _, i := range rng.Perm(len(batch)) {
				c := batch[i]
				draft := article(relative(c.URL), "A draft about grain and flour")
				for _, c := range []millrace.Change{put(draft), c} {
					if _, err := other.Apply(t.Context(), origin, []millrace.Change{c}); err != nil {
						t.Fatal(err)
					}
				}
				if i%3 == 0 {
					if err := other.Index(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := other.Index(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			v, err := other.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range []string{"wheel", "grain flour", "water gate pond", `"stone grain"`, "miller -sack", "title:title shaft"} {
				want(f, q, f.ask(v, millrace.Query{Text: q, Limit: 100}), f.ask(f.published(), millrace.Query{Text: q, Limit: 100}))
			}
		}},
		{"the little language of questions holds", questionLanguage},
		{"any text is a question", func(t *testing.T, f *fixture) {
			f.searchable()
			f.puts("/a", "/b")
			f.publish(0)
			v := f.published()
			for _, q := range []string{
				"", " ", "a", "x", `"`, `""`, `"text`, "-", "--", "-text", "title:", "url:", "AND", "NEAR(text", "text* OR (", "'; DROP TABLE site; --",
				"\x00text\x1b[31m", "text\xff\xfe", "🦆", "text 🦆", strings.Repeat("text ", 10_000), strings.Repeat("x", 100_000), "{title} : x", "^text + of", "水車",
			} {
				f.ask(v, millrace.Query{Text: q})
			}
			want(f, "an operator is a word", f.search(v, "text AND"), set("/a", "/b"))
			want(f, "nothing", f.ask(v, millrace.Query{Text: "🦆 !"}), &millrace.Found{})
		}},
		{"of many words the rarest count, and the answer says so", func(t *testing.T, f *fixture) {
			f.searchable()
			f.apply(put(article("/a", "A wheel of oak.")), put(article("/b", "Some grain and a wheel.")))
			f.publish(0)
			v := f.published()
			var unknown, long strings.Builder
			for i := range 300 {
				fmt.Fprintf(&unknown, "qx%dz ", i)
			}
			for long.Len() < millrace.MaxQuery {
				long.WriteString("wheel ")
			}
			for _, c := range []struct{ question, code, url string }{
				{"wheel grain", "", base + "b"},
				{unknown.String() + "wheel grain", "query-words", base + "b"},
				{long.String() + "grain", "query-cut", base + "a"},
			} {
				found := f.ask(v, millrace.Query{Text: c.question})
				if got := millrace.ErrorCode(found.Note); got != c.code || len(found.Hits) != 2 || found.Hits[0].URL != c.url {
					t.Errorf("%.20q: note %q, want %q; hits %v", c.question, got, c.code, found.Hits)
				}
			}
		}},
		{"pages of a hit are limited, and may be left out", func(t *testing.T, f *fixture) {
			f.searchable()
			p := article("/long", "")
			for i := range 12 {
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: fmt.Sprint("Part ", i)},
					millrace.Block{Type: millrace.TextBlock, Text: strings.Repeat(fmt.Sprintf("The wheel of part %d has %d buckets of oak%d. ", i, i*i, i), 36)})
			}
			f.apply(put(p), put(article("/short", "One wheel.")))
			f.publish(0)
			v := f.published()
			want(f, "three of a page", len(f.search(v, "wheel")), 4)
			want(f, "more", f.ask(v, millrace.Query{Text: "wheel", PerPage: 5, Limit: 100}).Total, 6)
			in := f.ask(v, millrace.Query{Text: "wheel", Page: "/long", Limit: 100})
			want(f, "in the page", in.Total, 12)
			rest := f.ask(v, millrace.Query{Text: "wheel", Page: base + "long", Skip: 10})
			want(f, "the rest of it", rest.Hits, in.Hits[10:])
			least := f.ask(v, millrace.Query{Text: "wheel", Page: "/long", Least: in.Hits[3].Relevance, Limit: 100})
			want(f, "the relevant ones", least.Hits, in.Hits[:len(least.Hits)])
			if n := len(least.Hits); n < 4 || n == 12 && in.Hits[11].Relevance < in.Hits[3].Relevance {
				t.Errorf("%d hits", n)
			}
			want(f, "in a page that is not there", f.ask(v, millrace.Query{Text: "wheel", Page: "/none"}).Total, 0)
		}},
		{"an edit renames only what it touches", func(t *testing.T, f *fixture) {
			f.searchable()
			p := article("/a", "")
			for i := range 9 {
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: fmt.Sprint("Part ", i)},
					millrace.Block{Type: millrace.TextBlock, Text: strings.Repeat(fmt.Sprintf("Wheel part%d. ", i), 100)})
			}
			f.apply(put(p))
			first := f.publish(0)
			names := func() []string {
				var out []string
				for i := range 9 {
					hits := f.ask(f.published(), millrace.Query{Text: fmt.Sprint("part", i)}).Hits
					if len(hits) != 1 {
						t.Fatalf("part %d: %d hits", i, len(hits))
					}
					out = append(out, hits[0].Chunk)
				}
				return out
			}
			before := names()
			p = p.Clone()
			p.Blocks[2+2*4+1].Text += " It is mended."
			f.apply(put(p))
			f.publish(first)
			after := names()
			after[4] = before[4]
			want(f, "ids", after, before)
			want(f, "found by what is new", f.search(f.published(), "mended"), set("/a"))
		}},
		{"compaction keeps what views find", func(t *testing.T, f *fixture) {
			f.searchable()
			f.puts("/a", "/b")
			first := f.publish(0)
			f.pass(time.Hour)
			f.apply(put(article("/a", "edited")), gone("/b"))
			second := f.publish(first)
			old := f.published()
			f.compact(time.Minute, time.Minute)
			want(f, "found", f.search(old, "edited text"), set("/a"))
			f.pass(time.Hour)
			f.puts("/c")
			f.publish(second)
			f.compact(time.Minute, time.Minute)
			want(f, "found in the next one", f.search(f.published(), "text"), set("/c"))
			want(f, "and what was before", f.search(f.published(), "edited"), set("/a"))
			f.pass(time.Hour)
			f.compact(time.Minute, time.Minute)
			if _, err := old.(millrace.Searcher).Search(t.Context(), millrace.Query{Text: "text"}); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("a view that is gone: %v", err)
			}
		}},
		{"a canceled search stops", func(t *testing.T, f *fixture) {
			f.searchable()
			f.puts("/a")
			f.publish(0)
			v := f.published()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for name, call := range map[string]func() error{
				"Search": func() error { _, err := v.(millrace.Searcher).Search(ctx, millrace.Query{Text: "text"}); return err },
				"Index":  func() error { return f.site.Index(ctx, nil) },
				"Fit":    func() error { return f.site.Fit(ctx, nil) },
			} {
				if err := call(); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}},
		{"meaning is learned and forgotten with the pages", fitting},
		{"an embedder is asked, or done without", embedding},
		{"pages that are gone crowd nothing out", crowded},
	}
}

func questionLanguage(t *testing.T, f *fixture) {
	f.searchable()
	titled := article("/doc/herons", "They stand still.")
	titled.Title = "Herons and otters"
	f.apply(put(titled), put(article("/doc/otters", "Otters and herons swim by running water.")), put(article("/blog/otters", "The otters ran. Water was there.")),
		put(article("/wheels", "A water wheel runs, and the wheel of water ran.")))
	f.publish(0)
	v := f.published()
	sorted := func(q string) []string {
		got := f.search(v, q)
		slices.Sort(got)
		return got
	}
	for q, pages := range map[string][]string{
		"title:heron":         set("/doc/herons"),
		"title:herons otters": set("/doc/herons"),
		"url:blog water":      set("/blog/otters"),
		"url:blog":            set("/blog/otters"),
		"url:/DOC/":           set("/doc/herons", "/doc/otters"),
		`"water wheel"`:       set("/wheels"),
		`"wheel of water"`:    set("/wheels"),
		`"wheels water"`:      set(),
		"water -otter":        set("/wheels"),
		`water -"swim by"`:    set("/blog/otters", "/wheels"),
		"water -url:doc":      set("/blog/otters", "/wheels"),
		"wheell":              set("/wheels"),
	} {
		want(f, q, sorted(q), pages)
	}
	found := f.ask(v, millrace.Query{Text: "standnig"})
	want(f, "corrected", found.Corrected, "stand")
	want(f, "hits", len(found.Hits), 1)
	h := found.Hits[0]
	want(f, "snippet", h.Snippet[h.Marks[0][0]:h.Marks[0][1]], "stand")
	want(f, "hit", millrace.Hit{URL: h.URL, Title: h.Title, Type: h.Type, Headings: h.Headings, Text: h.Text},
		millrace.Hit{URL: base + "doc/herons", Title: "Herons and otters", Type: "paragraph", Headings: []string{"Heading"}, Text: "Heading\nThey stand still."})
}
