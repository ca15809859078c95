package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/ingest"
)

// onePage are the flags of commands that read one page.
type onePage struct {
	remote
	correcting
	Page string `arg:"" help:"Page: an HTML FILE, a URL, or - for standard input."`
	URL  string `name:"url" placeholder:"URL" help:"URL of a page that is read from a file, to resolve its links."`
}

type extractCommand struct {
	common
	onePage
	Text    bool `help:"Print only the text."`
	Explain bool `help:"Explain by selector what was kept, what was dropped and why."`
}

// extractReport is the report of `millrace extract --json`.
type extractReport struct {
	*millrace.Page
	Text      string            `json:"text"`                // plain text of the page
	Sources   map[string]string `json:"sources"`             // where each field was found
	Canonical string            `json:"canonical,omitempty"` // canonical URL that the page names
	Reason    string            `json:"reason,omitempty"`    // why the page has no content
	Code      string            `json:"code,omitempty"`      // code of the reason
	Explained *explained        `json:"explained,omitempty"` // decisions, with --explain
}

// explained is the part of the report that --explain adds.
type explained struct {
	Root    string   `json:"root"`           // selector of the content
	Kept    []part   `json:"kept"`           // parts that only a rule kept
	Dropped []part   `json:"dropped"`        // parts that were dropped
	Idle    []string `json:"idle,omitempty"` // rules that match nothing, such as "drop .promo"
}

// part is a subtree that was kept or dropped.
type part struct {
	Selector string `json:"selector"` // CSS selector of the part
	Reason   string `json:"reason"`   // why it was kept or dropped
	Words    int    `json:"words"`    // number of words
}

// Run extracts a page. A page without content is a result, with a reason.
func (c *extractCommand) Run(ctx context.Context, p *process) error {
	if c.Text && c.JSON {
		return usageError("--json prints all of a page; omit --text")
	}
	res, err := c.extract(ctx, p)
	if err != nil {
		return err
	}
	r := extractReport{Page: res.Page, Text: res.Page.Text(), Sources: res.Sources, Canonical: res.Canonical}
	if res.Reason != nil {
		r.Reason, r.Code = res.Reason.Error(), millrace.ErrorCode(res.Reason)
	}
	if c.Explain {
		r.Explained = &explained{Root: res.Root, Kept: []part{}, Dropped: []part{}}
		for _, k := range res.Kept {
			r.Explained.Kept = append(r.Explained.Kept, part(k))
		}
		for _, d := range res.Dropped {
			r.Explained.Dropped = append(r.Explained.Dropped, part(d))
		}
		r.Explained.Idle = res.Idle
	}
	return p.report(r, func(w *bytes.Buffer) { c.text(w, &r) })
}

// extract reads the page and extracts it.
func (c *onePage) extract(ctx context.Context, p *process) (*extract.Result, error) {
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	page, err := c.page(ctx, p, c.Page, c.URL)
	if err != nil {
		return nil, err
	}
	return page.Extract(ctx, rules)
}

// page reads a page from a file, a URL, or standard input for "-". address is the URL of a
// file, or "".
func (r *remote) page(ctx context.Context, p *process, name, address string) (_ *ingest.Input, err error) {
	name = ingest.Source(name)
	switch site := strings.Contains(name, "://"); {
	case site && address != "":
		return nil, usageError("--url: the page already has the URL " + name)
	case site:
		name, err = siteURL(name)
	case address != "":
		address, err = siteURL(address)
	}
	if err != nil {
		return nil, err
	}
	return ingest.ReadPage(ctx, r.client(p, nil).HTTP(), name, address, p.stdin)
}

// text writes the report as text.
func (c *extractCommand) text(w *bytes.Buffer, r *extractReport) {
	if c.Text {
		w.WriteString(r.Text)
	} else {
		c.fields(w, r)
		w.WriteByte('\n')
		w.WriteString(r.Markdown())
	}
	if b := w.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
		w.WriteByte('\n')
	}
	if r.Reason != "" {
		fmt.Fprintf(w, "no content: %s\n", r.Reason)
	}
	if e := r.Explained; e != nil {
		fmt.Fprintf(w, "\nkept     %s\n", e.Root)
		for _, k := range e.Kept {
			fmt.Fprintf(w, "kept     %s: %s, %d words\n", k.Selector, k.Reason, k.Words)
		}
		for _, d := range e.Dropped {
			fmt.Fprintf(w, "dropped  %s: %s, %d words\n", d.Selector, d.Reason, d.Words)
		}
		for _, rule := range e.Idle {
			fmt.Fprintf(w, "idle     %s: matches nothing on this page\n", rule)
		}
	}
}

// fields writes the fields of the page with their sources.
func (c *extractCommand) fields(w *bytes.Buffer, r *extractReport) {
	date := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339)
	}
	for _, f := range [][2]string{
		{"url", r.URL},
		{"canonical", r.Canonical},
		{"title", r.Title},
		{"description", r.Description},
		{"author", r.Author},
		{"published", date(r.Published)},
		{"modified", date(r.Modified)},
		{"language", r.Language},
		{"section", r.Section},
		{"tags", strings.Join(r.Tags, ", ")},
		{"kind", string(r.Kind)},
	} {
		if f[1] == "" || f[0] == "canonical" && f[1] == r.URL || strings.HasPrefix(f[1], ingest.Nowhere) {
			continue
		}
		fmt.Fprintf(w, "%-12s %s", f[0], f[1])
		if s := r.Sources[f[0]]; s != "" {
			fmt.Fprintf(w, "  (%s)", s)
		}
		w.WriteByte('\n')
	}
}
