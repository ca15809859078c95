package index

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

func wordCases() []testCase {
	return []testCase{
		{"a word is stemmed in every language of the site", func(t *testing.T, f *fixture) {
			var batch []millrace.Change
			in := func(path, language, text string) {
				p := article(path, text)
				p.Language, p.Known = language, p.Known|millrace.FieldLanguage
				batch = append(batch, put(p))
			}
			for i := range 120 {
				in(fmt.Sprintf("/en%d", i), "en", fmt.Sprintf("The boats of harbor%d leave.", i))
			}
			for _, l := range []string{"fr", "es", "it", "nl"} {
				in("/"+l+"1", l, "Zzz")
				in("/"+l+"2", l, "Zzz")
			}
			in("/ru", "ru-RU", "Пока вода остановится.")
			in("/hu", "hu", "A malmok a házakban vannak.")
			in("/ja", "ja", "水車の歯車を掃除します。")
			f.apply(batch...)
			f.update()
			for q, page := range map[string]string{"воды": "/ru", "ház": "/hu", "harbor7 boat": "/en7", "歯車": "/ja"} {
				if got := f.search(f.head(), q); len(got) == 0 || got[0] != page {
					t.Errorf("%s: %q, want %s first", q, got, page)
				}
			}
		}},
		{"one letter finds the words that contain it", func(t *testing.T, f *fixture) {
			f.apply(put(article("/a", "每年春天都应该清洗水车的轮子。")), put(article("/b", "Only Latin: plan b.")), put(article("/c", "关闭闸门，然后等待。喝水")))
			f.update()
			v := f.head()
			for q, pages := range map[string][]string{"车": set("/a"), "喝": set("/c"), "b": set("/b"), "鸭": set(), `"轮"`: set("/a"), "闸 -水": set("/c"), "轮 -门": set("/a")} {
				want(f, q, f.search(v, q), pages)
			}
			found := f.ask(v, millrace.Query{Text: "水"})
			want(f, "pages", found.Total, 2)
			for _, h := range found.Hits {
				for _, m := range h.Marks {
					want(f, "mark in "+h.URL, h.Snippet[m[0]:m[1]], "水")
				}
				want(f, "marks in "+h.URL, len(h.Marks), 1)
			}
		}},
		{"a word is corrected to the most likely word", func(t *testing.T, f *fixture) {
			f.apply(put(article("/a", "One accum.")), put(article("/b", "Before vacuuming.")), put(article("/c", "Run a vacuum.")), put(article("/d", "The vacuum is empty.")))
			f.update()
			found := f.ask(f.head(), millrace.Query{Text: "vaccum"}) //nolint:misspell // it is
			want(f, "corrected", found.Corrected, "vacuum")
			want(f, "hits", found.Total, 3)
			found = f.ask(f.head(), millrace.Query{Text: "vaccum accum"}) //nolint:misspell // it is
			want(f, "corrected with a hit", found.Corrected, "vacuum accum")
			want(f, "hits", found.Total, 4)
		}},
		{"a word is corrected wherever it is a separate word", func(_ *testing.T, f *fixture) {
			f.apply(put(article("/a", "Herons stand on the millpond.")), put(article("/b", "Boats of xheromns.")))
			f.update()
			for q, corrected := range map[string]string{
				"heromns lake heromns":     "herons lake herons",
				"url:/a xheromns heromns":  "url:/a xheromns herons",
				"heromns' heromns_heromns": "herons' herons_herons",
			} {
				want(f, q, f.ask(f.head(), millrace.Query{Text: q}).Corrected, corrected)
			}
		}},
		{"a page in another language does not make stop words count", func(t *testing.T, f *fixture) {
			var batch []millrace.Change
			for i := range 100 {
				batch = append(batch, put(article(fmt.Sprintf("/p%d", i), "Boats leave the harbor.")))
			}
			french := article("/fr", "Le moulin tourne.")
			french.Language, french.Known = "fr", french.Known|millrace.FieldLanguage
			f.apply(append(batch, put(french), put(article("/stone", "A stone.")), put(article("/whose", "Whose boat?")))...)
			f.update()
			want(f, "whose stone", f.search(f.head(), "whose stone"), set("/stone"))
			want(f, "whose", f.search(f.head(), "whose"), set("/whose"))
			want(f, "moulins", f.search(f.head(), "moulins"), set("/fr"))
		}},
		{"a name ranks before its words", func(t *testing.T, f *fixture) {
			f.apply(put(article("/a", "Connections are at the max, for the max of connections is the max.")), put(article("/b", "The setting max_connections says how many.")), put(article("/c", "No more.")))
			f.update()
			for q, pages := range map[string][]string{"max_connections": {"/b", "/a"}, "max connections": {"/a", "/b"}, "no-more": {"/c"}, "max_connections -more": {"/b", "/a"}, `"max_connections"`: {"/b"}} {
				want(f, q, f.search(f.head(), q), pages)
			}
			h := f.ask(f.head(), millrace.Query{Text: "max_connections"}).Hits[0]
			want(f, "mark", h.Snippet[h.Marks[0][0]:h.Marks[0][1]], "max_connections")
		}},
		{"a long page displaces no other page", func(t *testing.T, f *fixture) {
			p := article("/long", "")
			for i := range 1500 {
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: fmt.Sprint("Part ", i)},
					millrace.Block{Type: millrace.TextBlock, Text: strings.Repeat(fmt.Sprintf("The water wheel%d is a water wheel, and a wheel in water. ", i), 12)})
			}
			short := article("/short", "How it is cleaned, greased, and kept from ice in winter, when no one comes to the mill for weeks.")
			short.Title = "Care of the water wheel"
			f.apply(put(p), put(short))
			f.update()
			want(f, "pages", f.search(f.head(), "water wheel"), []string{"/long", "/long", "/long", "/short"})
		}},
	}
}
