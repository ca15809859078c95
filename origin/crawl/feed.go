package crawl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// Limits of a feed.
const (
	maxFeed      = 10 << 20 // maximum size in bytes
	maxFeedDepth = 100      // maximum nesting depth of elements
	maxItems     = 10_000
)

// item is one entry of a feed.
type item struct {
	url      string    // unchanged, as in the feed
	modified time.Time // zero = unknown
}

// parseFeed parses an RSS, Atom or JSON feed. It returns [millrace.ErrInvalid] or
// [millrace.ErrTooLarge] for a feed that it cannot read.
func parseFeed(data []byte) ([]item, error) {
	// Check the depth, because the XML parser recurses into nested elements.
	if trimmed := bytes.TrimLeft(data, "\xEF\xBB\xBF \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		if err := checkDepth(data); err != nil {
			return nil, err
		}
	}
	feed, err := gofeed.NewParser().Parse(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: feed: %w", millrace.ErrInvalid, err)
	}
	var items []item
	for _, it := range feed.Items {
		if it == nil || it.Link == "" {
			continue
		}
		if len(items) == maxItems {
			break
		}
		i := item{url: it.Link}
		switch {
		case it.UpdatedParsed != nil:
			i.modified = it.UpdatedParsed.UTC()
		case it.PublishedParsed != nil:
			i.modified = it.PublishedParsed.UTC()
		}
		items = append(items, i)
	}
	return items, nil
}

// checkDepth returns an error for XML whose elements nest too deeply.
func checkDepth(data []byte) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // names of elements are ASCII
	for depth := 0; ; {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: feed: %w", millrace.ErrInvalid, err)
		}
		switch t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > maxFeedDepth {
			return fmt.Errorf("%w: feed: elements nest deeper than %d", millrace.ErrTooLarge, maxFeedDepth)
		}
	}
}

// readFeed adds the pages in feed n.
func (r *run) readFeed(n int, resp *http.Response) error {
	data, err := fetch.ReadBody(resp, maxFeed)
	if err != nil {
		return err
	}
	items, err := parseFeed(data)
	if err != nil {
		return err
	}
	for _, it := range items {
		u, err := canon.Resolve(resp.Request.URL, it.url)
		if err != nil {
			continue
		}
		if err := r.listed(u, n, it.modified); err != nil {
			return err
		}
	}
	return nil
}
