package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/library"
)

type searchCommand struct {
	commonFlags
	embedFlags
	chosenSites
	Query    []string `arg:"" help:"Query, as one argument in quotation marks: words, \"phrases\", -without, title:word, url:part."`
	Store    string   `required:"" placeholder:"FILE|URL" help:"Store to search: a mirror that pull has written, or the store of a published site."`
	Limit    int      `default:"10" placeholder:"N" help:"Maximum passages to show (default: ${default})."`
	MinScore float64  `placeholder:"N" help:"Minimum relevance of a passage, from 0 to 1."`
}

// maxHits is the maximum value of --limit.
const maxHits = 1000

// Run updates the index, and searches.
func (c *searchCommand) Run(ctx context.Context, p *process) error {
	p.memory().Limit()
	// Do not retry, because a user is waiting. The next search embeds the missing passages.
	embedder, err := c.embedder(-1)
	if err != nil {
		return err
	}
	text := strings.Join(c.Query, " ")
	switch {
	case strings.TrimSpace(text) == "":
		return usageError("the query is empty; write a few words, such as \"reset a password\"")
	case c.Limit < 1 || c.Limit > maxHits:
		return usageError(fmt.Sprintf("--limit %d: must be from 1 to %d", c.Limit, maxHits))
	case !(c.MinScore >= 0 && c.MinScore <= 1):
		return usageError(fmt.Sprintf("--min-score %v: must be from 0 to 1", c.MinScore))
	}
	st, err := p.openToRead(ctx, c.Store)
	if err != nil {
		return err
	}
	path, _, err := p.companionPath(c.Store)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	lib := library.New(st, path, &library.Options{Logger: p.log, Embedder: embedder, Progress: p.steps()})
	var r *library.Report
	names, _, err := c.of(ctx, st, c.Store)
	if err == nil {
		r, err = lib.Search(ctx, names, millrace.Query{Text: text, Limit: c.Limit, MinRelevance: c.MinScore})
	}
	if err = errors.Join(err, lib.Close(), st.Close()); err != nil {
		return err
	}
	if c.JSON {
		return p.report(r, nil)
	}
	return p.stdout.Text(r.WriteText)
}
