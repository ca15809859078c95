package main

import (
	"bytes"
	"context"
	"strings"

	"github.com/millrace/millrace/internal/ingest"
)

type readCommand struct {
	commonFlags
	pageFlags
}

// readReport is the report of `millrace read --json`.
type readReport struct {
	URL      string `json:"url,omitempty"`   // URL of the page; absent for a file without --url
	Title    string `json:"title,omitempty"` // title of the page; absent if it has none
	Markdown string `json:"markdown"`        // the text that the command prints without --json
}

// Run prints a page as Markdown. A page without content is an error.
func (c *readCommand) Run(ctx context.Context, p *process) error {
	res, err := c.extract(ctx, p)
	if err == nil {
		err = res.Reason
	}
	if err != nil {
		return err
	}
	r := readReport{Title: res.Page.Title, Markdown: res.Page.Markdown()}
	if !strings.HasPrefix(res.Page.URL, ingest.UnknownBase) {
		r.URL = res.Page.URL
	}
	if r.Title != "" && !strings.HasPrefix(r.Markdown, "# ") {
		r.Markdown = "# " + r.Title + "\n\n" + r.Markdown
	}
	r.Markdown = strings.TrimRight(strings.ReplaceAll(r.Markdown, strings.TrimSuffix(ingest.UnknownBase, "/"), ""), "\n") + "\n"
	return p.report(r, func(w *bytes.Buffer) { w.WriteString(r.Markdown) })
}
