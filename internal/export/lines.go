package export

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
)

// line is a page in JSON Lines: the output of millrace extract, with the page's site, revision and
// terms of use.
type line struct {
	*millrace.Page
	Text     string             `json:"text"`
	Site     string             `json:"site"`
	Revision string             `json:"revision"` // changes whenever the page changes
	Terms    []policy.Statement `json:"terms,omitempty"`
}

// Lines writes one JSON object per page, each on its own line.
func Lines(ctx context.Context, w io.Writer, sites []Site, o *Options) (Counts, error) {
	out := newCounter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	var c Counts
	var of *Site
	var terms []policy.Statement
	err := each(ctx, sites, true, o, func(e entry) error {
		if e.site != of {
			of, terms = e.site, policy.Statements(e.site.Terms)
		}
		c.Pages++
		p := withoutInvalidJSON(e.page)
		return enc.Encode(line{Page: p, Text: p.Text(), Site: e.base, Revision: p.Version, Terms: terms})
	})
	if err == nil {
		err = out.finish()
	}
	c.Bytes = out.n
	return c, err
}

// gone is a deleted page in JSON Lines.
type gone struct {
	URL     string `json:"url"`
	Site    string `json:"site"`
	Deleted bool   `json:"deleted"`
}

// Changes writes the changes of a site since a cursor, each page once, in the order of the log: the
// current page, or a record of its deletion. Counts.Pages is the number of present pages, and
// Counts.Removed that of deleted ones. If the cursor is too old or from another store, Changes
// returns ErrConflict.
func Changes(ctx context.Context, w io.Writer, site Site, since millrace.Cursor, o *Options) (Counts, error) {
	out := newCounter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	base, terms := site.View.Site().Base, policy.Statements(site.Terms)
	var c Counts
	change := func(ch millrace.Change) error {
		var p *millrace.Page
		if ch.Kind == millrace.Put {
			var err error
			if p, err = site.View.Page(ctx, millrace.Ref{URL: ch.URL}); err != nil && !errors.Is(err, millrace.ErrNotFound) { // not found: the page is hidden
				return err
			}
		}
		switch {
		case p != nil:
			c.Pages++
			p = withoutInvalidJSON(p)
			return enc.Encode(line{Page: p, Text: p.Text(), Site: base, Revision: p.Version, Terms: terms})
		case ch.Kind != millrace.KindCheckpoint && !ch.New: // skip pages that were added and deleted since the cursor
			c.Removed++
			return enc.Encode(gone{ch.URL, base, true})
		}
		return nil
	}
	for ch, err := range site.View.Changes(ctx, since) {
		if err == nil {
			err = change(ch)
		}
		if err != nil {
			return c, fmt.Errorf("export %s: %w", base, err)
		}
		if o != nil && o.Progress != nil {
			o.Progress(c.Pages + c.Removed)
		}
	}
	err := out.finish()
	c.Bytes = out.n
	return c, err
}

// counter is a buffered writer that counts bytes.
type counter struct {
	*bufio.Writer
	n int64
}

func newCounter(w io.Writer) *counter { return &counter{Writer: bufio.NewWriterSize(w, 64<<10)} }

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

func (c *counter) finish() error {
	if err := c.Flush(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}
