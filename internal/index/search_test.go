package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// testCase tests one property of an index, which its name states.
type testCase struct {
	name string
	run  func(t *testing.T, f *fixture)
}

func TestSearch(t *testing.T) {
	for _, c := range slices.Concat(searchCases(), wordCases()) {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.run(t, newFixture(t))
		})
	}
}

func searchCases() []testCase {
	return []testCase{
		{"an index that is not built yet cannot be searched", func(t *testing.T, f *fixture) {
			f.puts("/a")
			if _, err := f.index.Search(t.Context(), f.head(), millrace.Query{Text: "text"}); !errors.Is(err, millrace.ErrUnavailable) {
				t.Errorf("search: %v", err)
			}
			if err := f.index.Fit(t.Context(), nil); !errors.Is(err, millrace.ErrUnavailable) {
				t.Errorf("fit: %v", err)
			}
			f.update()
			want(f, "hits", f.search(f.index.View(f.head()), "text"), set("/a"))
			found, err := f.index.View(f.head()).(millrace.Searcher).Search(t.Context(), millrace.Query{Text: "text"})
			if err != nil || len(found.Hits) != 1 {
				t.Errorf("a view that implements Searcher: %+v, %v", found, err)
			}
		}},
		{"results contain only pages of the view", func(t *testing.T, f *fixture) {
			f.apply(put(article("/a", "Herons stand in the millpond.")), put(article("/b", "Otters swim.")), put(article("/d", "Herons sleep.")))
			f.update()
			old := f.head()
			want(f, "note", f.ask(old, millrace.Query{Text: "herons"}).Note, nil)
			f.apply(put(article("/a", "Kingfishers dive.")), gone("/b"), put(article("/c", "Herons fly.")))
			behind := f.ask(f.head(), millrace.Query{Text: "herons otters"})
			if len(behind.Hits) != 1 || relative(behind.Hits[0].URL) != "/d" || millrace.ErrorCode(behind.Note) != "index-behind" {
				t.Errorf("index older than the view: %+v", behind)
			}
			f.update()
			for q, pages := range map[string][]string{"herons": set("/c", "/d"), "otters": set(), "kingfisher": set("/a")} {
				got := f.search(f.head(), q)
				slices.Sort(got)
				want(f, "then: "+q, got, pages)
			}
			ahead := f.ask(old, millrace.Query{Text: "herons otters kingfisher"})
			if len(ahead.Hits) != 1 || relative(ahead.Hits[0].URL) != "/d" || ahead.Note != nil {
				t.Errorf("index newer than the view: %+v", ahead)
			}
			turn := f.state().turn
			if err := f.index.Update(t.Context(), old, nil); err != nil || f.state().turn != turn {
				t.Errorf("an update to an older view: %v", err)
			}
			f.reopen(nil)
			want(f, "after a restart", f.search(f.head(), "kingfisher"), set("/a"))
		}},
		{"a hidden page is not found", func(t *testing.T, f *fixture) {
			hidden := article("/hidden", "A secret sluice")
			hidden.Access.NoIndex = true
			list := article("/list", "A list of every sluice")
			list.Kind, list.Known = millrace.Archive, list.Known|millrace.FieldKind
			f.apply(put(hidden), put(list), put(article("/a", "A sluice")), put(article("/private/b", "A private sluice")))
			f.update()
			want(f, "found", f.search(f.head(), "sluice"), set("/a", "/private/b"))
			f.reopen(func() { f.config.Visibility.Exclude = []string{"/private"} })
			want(f, "with another visibility rule", f.search(f.head(), "sluice"), set("/a"))
			f.update()
			want(f, "and updated", f.search(f.head(), "sluice"), set("/a"))
			want(f, "passages", f.state().passages, 1)
		}},
		{"an index whose cursor is refused is compared", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b", "/c", "/e", "/f")
			f.update()
			next := f.state().next
			f.apply(put(article("/b", "edited")), gone("/a"), gone("/e"))
			f.pass(time.Hour)
			f.puts("/d", "/g")
			f.pass(time.Hour)
			if err := f.site.Compact(t.Context(), time.Minute, time.Minute); err != nil {
				t.Fatal(err)
			}
			f.update()
			got := f.search(f.head(), "text edited")
			slices.Sort(got)
			want(f, "found", got, set("/b", "/c", "/d", "/f", "/g"))
			want(f, "passages", f.state().passages, 5)
			want(f, "new rows", f.state().next-next, 1+2*2) // a passage of /b; a page and a passage for each of two others
		}},
		{"an index of another store is compared", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b")
			f.update()
			if err := f.store.Close(); err != nil {
				t.Fatal(err)
			}
			for _, end := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(f.file() + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
			if err := f.index.Close(); err != nil {
				t.Fatal(err)
			}
			f.open()
			f.puts("/b", "/c")
			f.update()
			got := f.search(f.head(), "text")
			slices.Sort(got)
			want(f, "found", got, set("/b", "/c"))
		}},
		{"the result does not depend on the order of writes", func(t *testing.T, f *fixture) {
			rng := rand.New(rand.NewPCG(3, 5))
			other := newFixture(t)
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
			f.update()
			for _, i := range rng.Perm(len(batch)) {
				c := batch[i]
				draft := article(relative(c.URL), "A draft about grain and flour")
				other.apply(put(draft))
				if i%2 == 0 {
					other.update()
				}
				other.apply(c)
				if i%3 == 0 {
					other.update()
				}
			}
			other.update()
			for _, q := range []string{"wheel", "grain flour", "water gate pond", `"stone grain"`, "miller -sack", "title:title shaft"} {
				want(f, q, other.ask(other.head(), millrace.Query{Text: q, Limit: 100}), f.ask(f.head(), millrace.Query{Text: q, Limit: 100}))
			}
		}},
		{"the query syntax works", questionLanguage},
		{"any text is a valid question", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b")
			f.update()
			v := f.head()
			for _, q := range []string{
				"", " ", "a", "x", `"`, `""`, `"text`, "-", "--", "-text", "title:", "url:", "AND", "NEAR(text", "text* OR (", "'; DROP TABLE site; --",
				"\x00text\x1b[31m", "text\xff\xfe", "🦆", "text 🦆", strings.Repeat("text ", 10_000), strings.Repeat("x", 100_000), "{title} : x", "^text + of", "水車",
			} {
				f.ask(v, millrace.Query{Text: q})
			}
			want(f, "operators of FTS5 are words", f.search(v, "text AND"), set("/a", "/b"))
			want(f, "nothing", f.ask(v, millrace.Query{Text: "🦆 !"}), &millrace.Found{})
		}},
		{"of many words, only the rarest are used, and the note says so", func(t *testing.T, f *fixture) {
			f.apply(put(article("/a", "A wheel of oak.")), put(article("/b", "Some grain and a wheel.")))
			f.update()
			v := f.head()
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
				{long.String() + "grain", "query-truncated", base + "a"},
			} {
				found := f.ask(v, millrace.Query{Text: c.question})
				if got := millrace.ErrorCode(found.Note); got != c.code || len(found.Hits) != 2 || found.Hits[0].URL != c.url {
					t.Errorf("%.20q: note %q, want %q; hits %v", c.question, got, c.code, found.Hits)
				}
			}
		}},
		{"the hits per page are limited, and pages can be excluded", func(t *testing.T, f *fixture) {
			p := article("/long", "")
			for i := range 12 {
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: fmt.Sprint("Part ", i)},
					millrace.Block{Type: millrace.TextBlock, Text: strings.Repeat(fmt.Sprintf("The wheel of part %d has %d buckets of oak%d. ", i, i*i, i), 36)})
			}
			f.apply(put(p), put(article("/short", "One wheel.")))
			f.update()
			v := f.head()
			want(f, "three hits per page", len(f.search(v, "wheel")), 4)
			want(f, "more", f.ask(v, millrace.Query{Text: "wheel", PerPage: 5, Limit: 100}).Total, 6)
			in := f.ask(v, millrace.Query{Text: "wheel", Page: "/long", Limit: 100})
			want(f, "in one page", in.Total, 12)
			rest := f.ask(v, millrace.Query{Text: "wheel", Page: base + "long", Skip: 10})
			want(f, "with an offset", rest.Hits, in.Hits[10:])
			least := f.ask(v, millrace.Query{Text: "wheel", Page: "/long", MinRelevance: in.Hits[3].Relevance, Limit: 100})
			want(f, "the relevant hits", least.Hits, in.Hits[:len(least.Hits)])
			if n := len(least.Hits); n < 4 || n == 12 && in.Hits[11].Relevance < in.Hits[3].Relevance {
				t.Errorf("%d hits", n)
			}
			want(f, "in a missing page", f.ask(v, millrace.Query{Text: "wheel", Page: "/none"}).Total, 0)
		}},
		{"an edit changes the IDs of few passages", func(t *testing.T, f *fixture) {
			p := article("/a", "")
			for i := range 9 {
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: fmt.Sprint("Part ", i)},
					millrace.Block{Type: millrace.TextBlock, Text: strings.Repeat(fmt.Sprintf("Wheel part%d. ", i), 100)})
			}
			f.apply(put(p))
			f.update()
			names := func() []string {
				var out []string
				for i := range 9 {
					hits := f.ask(f.head(), millrace.Query{Text: fmt.Sprint("part", i)}).Hits
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
			f.update()
			after := names()
			after[4] = before[4]
			want(f, "ids", after, before)
			want(f, "found by new words", f.search(f.head(), "mended"), set("/a"))
		}},
		{"a canceled search stops", func(t *testing.T, f *fixture) {
			f.puts("/a")
			f.update()
			v := f.head()
			ctx, cancel := context.WithCancel(f.Context())
			cancel()
			f.puts("/b")
			for name, call := range map[string]func() error{
				"Search": func() error { _, err := f.index.Search(ctx, v, millrace.Query{Text: "text"}); return err },
				"Update": func() error { return f.index.Update(ctx, f.head(), nil) },
				"Fit":    func() error { return f.index.Fit(ctx, nil) },
			} {
				if err := call(); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}},
		{"vectors are fitted to the pages, and removed with them", learning},
		{"an embedder is used, or ignored if it fails", embedding},
		{"deleted pages displace no other page", crowded},
	}
}

func questionLanguage(_ *testing.T, f *fixture) {
	titled := article("/doc/herons", "They stand still.")
	titled.Title = "Herons and otters"
	f.apply(put(titled), put(article("/doc/otters", "Otters and herons swim by running water.")), put(article("/blog/otters", "The otters ran. Water was there.")),
		put(article("/wheels", "A water wheel runs, and the wheel of water ran.")))
	f.update()
	v := f.head()
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
		`"no such phrase"`:    set(),
		"water -otter":        set("/wheels"),
		`water -"swim by"`:    set("/blog/otters", "/wheels"),
		"water -url:doc":      set("/blog/otters", "/wheels"),
		"wheell":              set("/wheels"),
	} {
		want(f, q, sorted(q), pages)
	}
	// No passage has all of these questions: the phrase and the exclusion change only the order.
	for q, pages := range map[string][]string{
		`"wheel of water" herons otters`: {"/wheels", "/doc/herons", "/doc/otters", "/blog/otters"},
		`"swim by" stand water`:          {"/doc/otters", "/doc/herons", "/wheels", "/blog/otters"},
		"stand swim -herons -running":    {"/doc/herons", "/doc/otters"},
	} {
		want(f, q, f.search(v, q), pages)
	}
	found := f.ask(v, millrace.Query{Text: "standnig"})
	want(f, "corrected", found.Corrected, "stand")
	want(f, "hits", len(found.Hits), 1)
	h := found.Hits[0]
	want(f, "snippet", h.Snippet[h.Marks[0][0]:h.Marks[0][1]], "stand")
	want(f, "hit", millrace.Hit{URL: h.URL, Title: h.Title, Type: h.Type, Headings: h.Headings, Text: h.Text},
		millrace.Hit{URL: base + "doc/herons", Title: "Herons and otters", Type: "paragraph", Headings: []string{"Heading"}, Text: "Heading\nThey stand still."})
}
