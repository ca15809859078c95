package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/policy"
)

// Names of the Parquet files.
const (
	pagesName  = "pages.parquet"
	chunksName = "chunks.parquet"
)

// pageRow is a row of pages.parquet. Absent fields are null.
type pageRow struct {
	Site        string   `parquet:"site,dict"`
	URL         string   `parquet:"url"`
	Title       string   `parquet:"title,optional"`
	Description string   `parquet:"description,optional"`
	Summary     string   `parquet:"summary,optional"`
	Author      string   `parquet:"author,optional,dict"`
	Published   int64    `parquet:"published,optional,timestamp(millisecond)"`
	Modified    int64    `parquet:"modified,optional,timestamp(millisecond)"`
	Language    string   `parquet:"language,optional,dict"`
	Section     string   `parquet:"section,optional,dict"`
	Tags        []string `parquet:"tags,list"`
	Kind        string   `parquet:"kind,optional,dict"`
	Detail      string   `parquet:"detail,dict"` // summary, text or blocks
	Revision    string   `parquet:"revision"`
	Unconfirmed bool     `parquet:"unconfirmed"`     // content does not match the hash in its source
	Schema      string   `parquet:"schema,optional"` // a JSON array of JSON-LD objects
	Extra       string   `parquet:"extra,optional"`  // JSON: fields of a single protocol, by the protocol's name
	Text        string   `parquet:"text"`
	Markdown    string   `parquet:"markdown"`
	License     string   `parquet:"license,optional,dict"`
	Attribution bool     `parquet:"attribution"` // the site asks for attribution
	LinkBack    bool     `parquet:"link_back"`
	Notice      bool     `parquet:"notice"`
	AIInput     *bool    `parquet:"ai_input"` // whether the site allows this use; null = unknown
	AITrain     *bool    `parquet:"ai_train"`
	Search      *bool    `parquet:"search"`
	Terms       string   `parquet:"terms,optional,dict"` // JSON: all terms of the site, as in JSON Lines
}

// chunkRow is a row of chunks.parquet: a passage of a page, short enough for an embedding model.
type chunkRow struct {
	Site        string   `parquet:"site,dict"`
	URL         string   `parquet:"url,dict"`
	ID          string   `parquet:"chunk"`    // unique in the page; stable if other passages change
	Position    int32    `parquet:"position"` // position in the page, from 0
	Type        string   `parquet:"type,dict"`
	Title       string   `parquet:"title,optional,dict"` // title of the page
	Headings    []string `parquet:"headings,list"`       // headings above the passage, the outermost first
	Text        string   `parquet:"text"`
	Language    string   `parquet:"language,optional,dict"`
	Modified    int64    `parquet:"modified,optional,timestamp(millisecond)"`
	Revision    string   `parquet:"revision,dict"` // revision of the page
	License     string   `parquet:"license,optional,dict"`
	Attribution bool     `parquet:"attribution"`
	AIInput     *bool    `parquet:"ai_input"`
	AITrain     *bool    `parquet:"ai_train"`
	Search      *bool    `parquet:"search"`
}

// Parquet writes pages.parquet and chunks.parquet into a folder, and creates the folder if
// needed. The first has a row for each page, and the second a row for each passage with text.
// Parquet replaces existing files only when both new files are complete.
func Parquet(ctx context.Context, dir string, sites []Site, o *Options) (c Counts, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return c, err
	}
	names := []string{filepath.Join(dir, pagesName), filepath.Join(dir, chunksName)}
	err = replace.Files(names, func(f []*os.File) error {
		encoder, err := newEncoder()
		if err != nil {
			return err
		}
		pages, chunks := newTable[pageRow](f[0], "page", encoder), newTable[chunkRow](f[1], "chunk", encoder)
		if err := rows(ctx, sites, o, &c, pages, chunks); err != nil {
			return err
		}
		err = errors.Join(pages.close(), chunks.close())
		c.Bytes = pages.out.n + chunks.out.n
		return err
	})
	c.Files = 2
	return c, err
}

// rows writes the rows of both tables.
func rows(ctx context.Context, sites []Site, o *Options, c *Counts, pages *table[pageRow], chunks *table[chunkRow]) error {
	var of *Site
	var m *policy.Merged
	var all string
	return each(ctx, sites, true, o, func(e entry) error {
		if e.site != of {
			of, m, all = e.site, policy.Merge(e.site.Terms), ""
			if len(e.site.Terms) > 0 {
				b, err := plain(policy.Statements(e.site.Terms))
				if err != nil {
					return err
				}
				all = b
			}
		}
		p := withoutInvalidJSON(e.page)
		row, err := pageOf(e.base, p, m, all)
		if err != nil {
			return err
		}
		c.Pages++
		if err := pages.write(row, len(row.Text)+len(row.Markdown)+len(row.Schema)+len(row.Extra)); err != nil {
			return err
		}
		for i, q := range chunk.Passages(p) {
			if q.Text == "" {
				continue // a page with only a title
			}
			c.Chunks++
			err := chunks.write(&chunkRow{
				Site: row.Site, URL: row.URL, ID: q.ID, Position: int32(i), Type: q.Type, Title: row.Title, Headings: valids(q.Headings), //nolint:gosec // a page has fewer
				Text: valid(q.Text), Language: row.Language, Modified: row.Modified, Revision: row.Revision,
				License: row.License, Attribution: row.Attribution, AIInput: row.AIInput, AITrain: row.AITrain, Search: row.Search,
			}, len(q.Text))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func pageOf(base string, p *millrace.Page, m *policy.Merged, terms string) (*pageRow, error) {
	row := &pageRow{
		Site: base, URL: valid(p.URL), Title: valid(p.Title), Description: valid(p.Description), Summary: valid(p.Summary), Author: valid(p.Author),
		Published: instant(p.Published), Modified: instant(p.Modified), Language: valid(p.Language), Section: valid(p.Section), Tags: valids(p.Tags),
		Kind: valid(string(p.Kind)), Detail: [...]string{"summary", "text", "blocks"}[min(p.Detail, millrace.DetailBlocks)], Revision: p.Version, Unconfirmed: p.Unconfirmed,
		Text: valid(p.Text()), Markdown: valid(p.Markdown()),
		License: m.Terms, Attribution: m.Requirements.Attribution, LinkBack: m.Requirements.LinkBack, Notice: m.Requirements.Notice,
		AIInput: allowed(m, millrace.AIInput), AITrain: allowed(m, millrace.AITrain), Search: allowed(m, millrace.Search), Terms: terms,
	}
	var err error
	if len(p.Schema) > 0 {
		row.Schema, err = plain(p.Schema)
	}
	if err == nil && len(p.Extra) > 0 {
		row.Extra, err = plain(p.Extra)
	}
	return row, err
}

func allowed(m *policy.Merged, p millrace.Purpose) *bool {
	if yes, ok := m.Purposes[p]; ok {
		return &yes
	}
	return nil
}

// instant returns a time in milliseconds since 1970. It returns 0, which becomes null, for the
// zero time.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func valids(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = valid(s)
	}
	return out
}

// plain returns JSON without escapes for HTML.
func plain(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(b.Bytes())), nil
}
