package tct00

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tct"
)

// list gives the one list of all pages (6.1). The first is the home page, the
// page that it redirects to, or an overview; the others are in the order of
// identities.
func (p *publisher) list(v millrace.View, over *overview) *millrace.Document {
	site := v.Site()
	h := header(site.Time)
	if p.policy != nil {
		h["Link"] = []string{millrace.Link{URL: rooted(site, policyName), Rel: "describedby"}.String()} // 7.3
	}
	return &millrace.Document{
		Path:   listName,
		Header: h,
		OneTag: true,
		Alike:  true,
		Large:  true,
		Names:  int64(site.Pages),
		Write: func(ctx context.Context, w io.Writer) error {
			if err := writeList(ctx, v, over, w); err != nil {
				return fmt.Errorf("%s: list: %w", Name, err)
			}
			return nil
		},
	}
}

// writeList writes the list in one pass over the tags.
func writeList(ctx context.Context, v millrace.View, over *overview, w io.Writer) error {
	site := v.Site()
	docs := strings.TrimSuffix(site.Docs, "/")
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString(listHead) // an error stays until Flush
	buf := make([]byte, 0, 512)
	sep := "\n"
	write := func(it item) error {
		buf = appendItem(append(buf[:0], sep...), &it)
		sep = ",\n"
		_, err := out.Write(buf)
		return err
	}
	if over != nil {
		if err := write(item{CURL: over.doc.CanonicalURL, MURL: docs + over.Name, Modified: tct.Date(over.Modified), ContentHash: over.tag}); err != nil {
			return err
		}
	}
	page := func(t millrace.Tag) error {
		return write(item{CURL: t.URL, MURL: docs + tagName(site, t), Modified: tct.Date(tct.FormatTime(t.Modified)), ContentHash: t.Value})
	}
	home, err := tct.Home(ctx, v, Name)
	if err == nil {
		err = page(home)
	}
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		return err
	}
	for t, err := range v.Tags(ctx, Name, "") {
		if err != nil {
			return err
		}
		if t.URL == home.URL {
			continue
		}
		if err := page(t); err != nil {
			return err
		}
	}
	_, _ = out.WriteString(listTail)
	return out.Flush()
}

// overview is the document of a home page that is not published.
type overview struct {
	*tct.Overview
	doc document
	tag string
}

// overview makes the site overview, nil if the site publishes its home page.
func (p *publisher) overview(ctx context.Context, v millrace.View) (*overview, error) {
	o, err := tct.NewOverview(ctx, v, Name, names)
	if o == nil || err != nil {
		return nil, err
	}
	over := &overview{Overview: o, doc: document(o.Document)}
	over.doc.Content = headed(o.Title, millrace.Text(millrace.TextBlocks(o.Content)))
	over.tag = hashPrefix + tct.Fingerprint(over.doc.Content)
	return over, nil
}

// document gives the overview as a large document: it moves with many pages.
func (o *overview) document(site millrace.Site) *millrace.Document {
	return &millrace.Document{
		Path:    o.Name,
		ETag:    o.tag,
		Header:  pageHeader(o.doc.CanonicalURL, tct.ParseTime(o.Modified)),
		OneTag:  true,
		Alike:   true,
		Large:   true,
		Names:   int64(len(o.Named)),
		Touched: func(url string) bool { return o.Touched(site, url) },
		Write: func(_ context.Context, w io.Writer) error {
			return writeDocument(w, &o.doc, o.doc.CanonicalURL, o.tag)
		},
	}
}
