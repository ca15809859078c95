package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/search"
	stores "github.com/millrace/millrace/store/all"
)

// cranfield is a collection of abstracts, with queries and the relevant abstracts of each query.
type cranfield struct {
	Docs    []struct{ ID, Title, Text string }
	Queries []struct{ ID, Text string }
	Rel     map[string][]string
}

func readCranfield(data, name string) (*cranfield, error) {
	if data == "" {
		return nil, errors.New("missing folder of gold data; set -data or MILLRACE_TEST_DATA")
	}
	f, err := openGzip(filepath.Join(data, name, name+".json.gz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var c cranfield
	return &c, json.NewDecoder(f).Decode(&c)
}

// finder returns the best abstracts for a query, at most a hundred of them.
type finder func(ctx context.Context, question string) ([]string, error)

// score returns the means over the queries of nDCG@10, with binary gains, and of
// recall@100.
func (c *cranfield) score(ctx context.Context, find finder) (ndcg, recall float64, err error) {
	n := 0
	for _, q := range c.Queries {
		rel := c.Rel[q.ID]
		if len(rel) == 0 {
			continue
		}
		got, err := find(ctx, q.Text)
		if err != nil {
			return 0, 0, fmt.Errorf("question %s: %w", q.ID, err)
		}
		var dcg, best float64
		found := 0
		for i, id := range got {
			if !slices.Contains(rel, id) {
				continue
			}
			if i < 10 {
				dcg += 1 / math.Log2(float64(i)+2)
			}
			found++
		}
		for i := range min(10, len(rel)) {
			best += 1 / math.Log2(float64(i)+2)
		}
		ndcg += dcg / best
		recall += float64(found) / float64(len(rel))
		n++
	}
	return ndcg / float64(n), recall / float64(n), nil
}

// variant is a site of the abstracts with a change to the pages, the queries or the search.
type variant struct {
	what     string
	language string // "" = English
	page     func(p *millrace.Page)
	question func(text string) string
	noFit    bool
	trial    search.Trial
}

func variants() []variant {
	return []variant{
		{what: "unchanged"},
		{what: "without latent vectors", noFit: true},
		{what: "weight of latent vectors halved", trial: search.Trial{VectorWeight: 0.5}},
		{what: "weight of latent vectors doubled", trial: search.Trial{VectorWeight: 2}},
		{what: "passages with any word, without first searching for every word", trial: search.Trial{AnyOnly: true}},
		{what: "only passages with every word", trial: search.Trial{EveryOnly: true}},
		{what: "the same without latent vectors", noFit: true, trial: search.Trial{EveryOnly: true}},
		{what: "with stop words", trial: search.Trial{StopWords: true}},
		{what: "near-duplicates kept", trial: search.Trial{Duplicates: true}},
		{what: "with the stemmer for unknown languages, without stop words", language: "zxx"},
		{what: "with the stemmer for unknown languages", language: "zxx", question: withoutStops},
		{what: "titles weighted like text", page: func(p *millrace.Page) {
			p.Blocks = slices.Insert(p.Blocks, 0, millrace.Block{Type: millrace.TextBlock, Text: p.Title})
			p.Title = ""
		}},
		{what: "without titles", page: func(p *millrace.Page) { p.Title = "" }},
		{what: "repeated words of a question count once", question: func(text string) string {
			var out []string
			for _, w := range strings.Fields(text) {
				if !slices.Contains(out, w) {
					out = append(out, w)
				}
			}
			return strings.Join(out, " ")
		}},
	}
}

// withoutStops removes English stop words from a query.
func withoutStops(text string) string {
	var words []string
	for t := range search.NewAnalyzer().Tokens(text, "en") {
		if !t.Stop && !t.Extra {
			words = append(words, text[t.Start:t.End])
		}
	}
	return strings.Join(words, " ")
}

const cranfieldBase = "https://cranfield.example/"

// searched publishes a site of the abstracts and measures searches of it.
func (c *cranfield) searched(ctx context.Context, file string, v variant) (ndcg, recall float64, err error) {
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, cranfieldBase, cranfieldBase)
	if err != nil {
		return 0, 0, err
	}
	var batch []millrace.Change
	for _, d := range c.Docs {
		p := &millrace.Page{
			URL: cranfieldBase + d.ID, Title: d.Title, Language: "en", Blocks: millrace.TextBlocks(d.Text), Detail: millrace.DetailText,
			Known: millrace.FieldTitle | millrace.FieldLanguage | millrace.FieldContent,
		}
		if v.language != "" {
			p.Language = v.language
		}
		if v.page != nil {
			v.page(p)
		}
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
	}
	if _, err := site.Apply(ctx, "cranfield", batch); err != nil {
		return 0, 0, err
	}
	head, err := site.Head(ctx)
	if err != nil {
		return 0, 0, err
	}
	x, err := index.Open(ctx, index.File(file, "cranfield"), nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = x.Close() }()
	if err := x.Update(ctx, head, nil); err != nil {
		return 0, 0, err
	}
	if !v.noFit {
		if err := x.Fit(ctx, nil); err != nil {
			return 0, 0, err
		}
	}
	return c.score(ctx, func(ctx context.Context, question string) ([]string, error) {
		if v.question != nil {
			question = v.question(question)
		}
		found, err := x.Search(search.WithTrial(ctx, v.trial), head, millrace.Query{Text: question, Limit: 100, PerPage: 1})
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, h := range found.Hits {
			ids = append(ids, strings.TrimPrefix(h.URL, cranfieldBase))
		}
		return ids, nil
	})
}

var searchWord = regexp.MustCompile(`[\pL\pN]+`)

// anyWord returns an FTS5 query that matches any word of a query. It contains each word as often
// as the query does.
func anyWord(question string) string {
	var terms []string
	for _, w := range searchWord.FindAllString(question, -1) {
		terms = append(terms, `"`+w+`"`)
	}
	return strings.Join(terms, " OR ")
}

// fts5 measures SQLite's FTS5 with bm25 and Porter stemming.
func (c *cranfield) fts5(ctx context.Context, file string) (ndcg, recall float64, err error) {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, "CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, body, tokenize = 'porter unicode61')"); err != nil {
		return 0, 0, err
	}
	for _, d := range c.Docs {
		if _, err := db.ExecContext(ctx, "INSERT INTO t VALUES (?, ?)", d.ID, d.Title+"\n"+d.Text); err != nil {
			return 0, 0, err
		}
	}
	return c.score(ctx, func(ctx context.Context, question string) (ids []string, err error) {
		rows, err := db.QueryContext(ctx, "SELECT id FROM t WHERE t MATCH ? ORDER BY rank LIMIT 100", anyWord(question))
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, rows.Err()
	})
}

// searchMean adds the rows of the means over three collections.
func (b *bench) searchMean(ctx context.Context, data string) error {
	names := []string{"cranfield", "cacm", "cisi"}
	figures := []struct {
		what, each string
		peer, ours float64
		reach      float64
	}{{what: "nDCG@10", reach: 0.45}, {what: "recall@100", reach: 0.66}}
	for _, name := range names {
		c, err := readCranfield(data, name)
		if err != nil {
			return err
		}
		var peer, ours [2]float64
		if peer[0], peer[1], err = c.fts5(ctx, filepath.Join(b.dir, name+"-mean-fts5.db")); err != nil {
			return err
		}
		if ours[0], ours[1], err = c.searched(ctx, filepath.Join(b.dir, name+"-mean.db"), variant{}); err != nil {
			return err
		}
		for i := range figures {
			f := &figures[i]
			f.each += fmt.Sprintf(", %s %.4f", name, ours[i])
			f.peer, f.ours = f.peer+peer[i]/float64(len(names)), f.ours+ours[i]/float64(len(names))
		}
	}
	for _, f := range figures {
		b.add(row{
			what: f.what + ", the mean of cranfield, cacm and cisi", limit: fmt.Sprintf("%.4f (FTS5 bm25, porter)", f.peer),
			ours: fmt.Sprintf("%.4f (%s)", f.ours, f.each[2:]), ratio: fmt.Sprintf("%.2f", f.ours/f.peer),
			reach: fmt.Sprintf("%.2f", f.reach), good: f.ours >= f.reach,
		})
	}
	return nil
}

// searchQuality adds the rows of searchMean, and the rows of every variant on cranfield.
func (b *bench) searchQuality(ctx context.Context, data string) error {
	if err := b.searchMean(ctx, data); err != nil {
		return err
	}
	c, err := readCranfield(data, "cranfield")
	if err != nil {
		return err
	}
	peerN, peerR, err := c.fts5(ctx, filepath.Join(b.dir, "cranfield-fts5.db"))
	if err != nil {
		return err
	}
	for i, v := range variants() {
		n, r, err := c.searched(ctx, filepath.Join(b.dir, fmt.Sprintf("cranfield-%d.db", i)), v)
		if err != nil {
			return err
		}
		for _, f := range []struct {
			what              string
			peer, ours, reach float64
		}{{"nDCG@10", peerN, n, 0.41}, {"recall@100", peerR, r, 0.78}} {
			line := row{
				what: fmt.Sprintf("%s on cranfield, %s", f.what, v.what), limit: fmt.Sprintf("%.3f (FTS5 bm25, porter)", f.peer),
				ours: fmt.Sprintf("%.3f", f.ours), ratio: fmt.Sprintf("%.2f", f.ours/f.peer),
			}
			if i == 0 {
				line.reach, line.good = fmt.Sprintf("%.2f", f.reach), f.ours >= f.reach
			}
			b.add(line)
		}
	}
	return nil
}
