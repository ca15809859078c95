package storetest

import (
	"encoding/json"
	"testing"

	"github.com/millrace/millrace"
)

type rawJSON = json.RawMessage

const other = "https://example.com tct-01" // a second source

func mergeCases() []testCase {
	return []testCase{
		{"a field that a source does not know stays", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			p.Author = "Ada"
			p.Known |= millrace.FieldAuthor
			f.apply(put(p))
			want(f, "counts", f.from(other, put(&millrace.Page{URL: base + "a", Title: "New", Known: millrace.FieldTitle})), millrace.Counts{Updated: 1})
			got := f.page(f.siteHead(), "/a")
			want(f, "fields", []string{got.Title, got.Author, got.Blocks[1].Text}, []string{"New", "Ada", "text"})
			f.from(other, put(&millrace.Page{URL: base + "a", Known: millrace.FieldAuthor}))
			want(f, "author", f.page(f.siteHead(), "/a").Author, "")
		}},
		{"plain text that equals the stored content keeps its blocks", func(t *testing.T, f *fixture) {
			rich := article("/a", "text")
			f.apply(put(rich))
			partial := &millrace.Page{
				URL: base + "a", Known: millrace.FieldContent, Detail: millrace.DetailText,
				Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: rich.Text()}},
			}
			want(f, "same", f.from(other, put(partial)), millrace.Counts{Unchanged: 1})
			want(f, "detail", f.page(f.siteHead(), "/a").Detail, millrace.DetailBlocks)
			partial = partial.Clone()
			partial.Blocks = []millrace.Block{{Type: millrace.TextBlock, Text: "Something else"}}
			want(f, "other", f.from(other, put(partial)), millrace.Counts{Updated: 1})
			want(f, "detail", f.page(f.siteHead(), "/a").Detail, millrace.DetailText)
			want(f, "refill", f.apply(put(article("/a", "Something else"))), millrace.Counts{Updated: 1})
			want(f, "detail", f.page(f.siteHead(), "/a").Detail, millrace.DetailBlocks)
		}},
		{"a source without title and content creates no page", func(t *testing.T, f *fixture) {
			p := &millrace.Page{URL: base + "a", Section: "docs", Known: millrace.FieldSection, Version: "v"}
			want(f, "counts", f.apply(put(p)), millrace.Counts{Unchanged: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set())
			want(f, "held", f.storedRefs(origin), set("/a=v"))
			f.from(other, put(article("/a", "text")))
			want(f, "now it adds to an existing page", f.apply(put(p)), millrace.Counts{Updated: 1})
			want(f, "section", f.page(f.siteHead(), "/a").Section, "docs")
		}},
		{"a change of metadata alone is a change", func(t *testing.T, f *fixture) {
			f.puts("/a")
			before := f.siteHead()
			p := article("/a", "Text of /a")
			p.Title = "Another"
			want(f, "counts", f.apply(put(p)), millrace.Counts{Updated: 1})
			want(f, "old view", f.page(before, "/a").Title, "Title of /a")
			got := f.page(f.siteHead(), "/a")
			want(f, "new view", []string{got.Title, got.Blocks[1].Text}, []string{"Another", "Text of /a"})
		}},
		{"invalid JSON from a source does no damage", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			p.Schema = []rawJSON{rawJSON(`{broken`)}
			p.Known |= millrace.FieldSchema
			want(f, "counts", f.apply(put(p)), millrace.Counts{Added: 1})
			want(f, "again", f.apply(put(p)), millrace.Counts{Unchanged: 1})
			want(f, "schema", len(f.page(f.siteHead(), "/a").Schema), 0)
		}},
	}
}
