package tct00

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

// list gives the one list of all pages (6.1). Its items are in the order of
// identities, in which the home page is the first; so is an overview.
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
		if err := write(item{CURL: over.doc.CanonicalURL, MURL: docs + over.name, ContentHash: over.tag}); err != nil {
			return err
		}
	}
	for t, err := range v.Tags(ctx, Name, "") {
		if err != nil {
			return err
		}
		if err := write(item{CURL: t.URL, MURL: docs + tagName(site, t), Modified: tct.Date(tct.FormatTime(t.Modified)), ContentHash: t.Value}); err != nil {
			return err
		}
	}
	_, _ = out.WriteString(listTail)
	return out.Flush()
}

// overview is the document of a home page that is not published.
type overview struct {
	doc  document
	name string
	tag  string
	// names is how many pages it names.
	names int64
}

// newest is how many pages an overview names.
const newest = 20

// overview makes the site overview, nil if the site publishes its home page.
// It says nothing but what pages say, so that it changes only with them.
func (p *publisher) overview(ctx context.Context, v millrace.View) (*overview, error) {
	_, err := v.Tag(ctx, Name, "/")
	if !errors.Is(err, millrace.ErrNotFound) {
		return nil, err
	}
	name, err := overviewName(ctx, v)
	if err != nil {
		return nil, err
	}
	site := v.Site()
	over := &overview{name: name, doc: document{CanonicalURL: site.Base, Language: canon.ValidUTF8(site.Language)}}
	over.doc.Title = tct.Title(&millrace.Page{Title: site.Title}, site.Base)
	var b strings.Builder
	for i, s := range site.Sections {
		if i == 0 {
			b.WriteString("Sections:")
		}
		fmt.Fprintf(&b, "\n- %s: %d pages", strings.Join(strings.Fields(s.Name), " "), s.Pages)
	}
	n := 0
	for page, err := range v.Scan(ctx, millrace.Scan{Order: millrace.ByPublished}) {
		if err != nil {
			return nil, fmt.Errorf("%s: site overview: %w", Name, err)
		}
		d := documentOf(page)
		if d == nil {
			continue
		}
		if n == 0 {
			b.WriteString("\n\nNewest pages:")
		}
		fmt.Fprintf(&b, "\n- %s", strings.Join(strings.Fields(d.Title), " "))
		if d.Published != "" {
			fmt.Fprintf(&b, " (%s)", d.Published[:len("2006-01-02")])
		}
		b.WriteString("\n  " + d.CanonicalURL)
		if n++; n == newest {
			break
		}
	}
	over.names = int64(n)
	over.doc.Content = headed(over.doc.Title, millrace.Text(millrace.TextBlocks(canon.ValidUTF8(b.String()))))
	over.tag = hashPrefix + fingerprint(over.doc.Content)
	return over, nil
}

// overviewName gives the name of the overview, which a page of the site with
// that name keeps.
func overviewName(ctx context.Context, v millrace.View) (string, error) {
	_, err := v.Tag(ctx, Name, docName)
	switch {
	case err == nil:
		return names.Of("/", 2), nil
	case errors.Is(err, millrace.ErrNotFound):
		return names.Of("/", 1), nil
	}
	return "", err
}

// document gives the overview as a large document: it moves with many pages.
// made is the time of the site's newest change.
func (o *overview) document(made time.Time) *millrace.Document {
	return &millrace.Document{
		Path:   o.name,
		ETag:   o.tag,
		Header: pageHeader(o.doc.CanonicalURL, made),
		OneTag: true,
		Alike:  true,
		Large:  true,
		Names:  o.names,
		Write: func(_ context.Context, w io.Writer) error {
			return writeDocument(w, &o.doc, o.doc.CanonicalURL, o.tag)
		},
	}
}
