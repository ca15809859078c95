package tct01

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
)

// maxShards keeps the root's Link fields, one for each list, under what
// servers and clients take as a header: 5 KB.
const maxShards = 64

// shards gives the number of lists: a power of two, with room for a tenth
// more pages than there are, since a hash does not fill all of them alike.
func (p *publisher) shards(site millrace.Site) int {
	n := 1
	for site.Pages > p.listItems && n < maxShards && float64(n)*float64(p.listItems)*0.9 < float64(site.Pages) {
		n *= 2
	}
	return n
}

// listName gives the path of one list. It changes with the number of lists:
// whoever remembers the lists of another number then finds none, rather than
// one that seems to have lost half its pages.
func listName(i, shards int) string {
	if shards == 1 {
		return "/llm-pages.json"
	}
	return "/llm-pages-" + strconv.Itoa(i+1) + "-of-" + strconv.Itoa(shards) + ".json"
}

// shardOf gives the list of a page: FNV-1a (64 bits) of its identity, folded,
// because its low bits alone depend on few bits of each byte.
func shardOf(identity string, shards int) int {
	h := uint64(14695981039346656037)
	for i := range len(identity) {
		h = (h ^ uint64(identity[i])) * 1099511628211
	}
	h ^= h >> 32
	h ^= h >> 16
	return int(h & uint64(shards-1))
}

// list gives one M-Sitemap (1.7). Its items are in the order of identities;
// an overview comes first in the first list.
func (p *publisher) list(v millrace.View, i, shards int, over *overview, group *millrace.Group) *millrace.Document {
	site, path := v.Site(), listName(i, shards)
	d := &millrace.Document{
		Path:   path,
		Header: header(site.Time),
		OneTag: true,
		Large:  true,
		Names:  int64(site.Pages / shards),
		Group:  group,
		Write: func(ctx context.Context, w io.Writer) error {
			return group.Write(ctx, map[string]io.Writer{path: w})
		},
	}
	if i > 0 || site.Home == "/" && over == nil { // else what "/" leads to may be another page by now
		d.Touched = func(url string) bool { return touches(canon.Relative(site.Base, url), i, shards) }
	}
	return d
}

// group writes lists of one view together.
func (p *publisher) group(v millrace.View, shards int, over *overview) *millrace.Group {
	return &millrace.Group{Write: func(ctx context.Context, to map[string]io.Writer) error {
		if err := writeLists(ctx, v, shards, over, to); err != nil {
			return fmt.Errorf("%s: lists: %w", Name, err)
		}
		return nil
	}}
}

// touches reports whether a change of a page can change the list: the page is
// in it, or one whose name depends on that page's presence, or the overview
// that stands for an absent home page.
func touches(identity string, i, shards int) bool {
	if shardOf(identity, shards) == i || identity == "/" && i == 0 {
		return true
	}
	_, after := names.Rivals(identity)
	for _, a := range after {
		if shardOf(a, shards) == i {
			return true
		}
	}
	return false
}

// writeLists writes some of the lists in one pass over the tags.
func writeLists(ctx context.Context, v millrace.View, shards int, over *overview, to map[string]io.Writer) error {
	site := v.Site()
	docs := strings.TrimSuffix(site.Docs, "/")
	lists := make([]*bufio.Writer, shards) // nil: not asked for
	sep := make([]bool, shards)
	for i := range lists {
		if w := to[listName(i, shards)]; w != nil {
			lists[i] = bufio.NewWriterSize(w, 64<<10)
			_, _ = lists[i].WriteString(listHead) // an error stays until Flush
		}
	}
	buf := make([]byte, 0, 512)
	write := func(i int, it item) error {
		buf = buf[:0]
		if sep[i] {
			buf = append(buf, ',')
		}
		sep[i] = true
		buf = appendItem(append(buf, '\n'), &it)
		_, err := lists[i].Write(buf)
		return err
	}
	if lists[0] != nil && over != nil {
		if err := write(0, item{CURL: over.doc.CanonicalURL, MURL: docs + over.Name, ETag: over.hash}); err != nil {
			return err
		}
	}
	for t, err := range v.Tags(ctx, Name, "") {
		if err != nil {
			return err
		}
		identity := canon.Relative(site.Base, t.URL)
		i := shardOf(identity, shards)
		if lists[i] == nil {
			continue
		}
		if err := write(i, item{CURL: t.URL, MURL: docs + names.Of(identity, t.N), ETag: t.Value}); err != nil {
			return err
		}
	}
	for _, out := range lists {
		if out == nil {
			continue
		}
		_, _ = out.WriteString(listTail)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// overview is the document of a home page that is not published.
type overview struct {
	*tct.Overview
	doc  document
	hash string
}

// overview makes the site overview, nil if the site publishes its home page.
func (p *publisher) overview(ctx context.Context, v millrace.View) (*overview, error) {
	o, err := tct.NewOverview(ctx, v, Name, names)
	if o == nil || err != nil {
		return nil, err
	}
	over := &overview{Overview: o, doc: document(o.Document)}
	_, over.hash = over.doc.encode()
	return over, nil
}

// document gives the overview as a large document: it moves with many pages.
func (o *overview) document(site millrace.Site) *millrace.Document {
	return &millrace.Document{
		Path:    o.Name,
		ETag:    o.hash,
		Header:  pageHeader(o.doc.CanonicalURL, tct.ParseTime(o.Modified)),
		OneTag:  true,
		Large:   true,
		Names:   int64(len(o.Named)),
		Touched: func(url string) bool { return o.Touched(site, url) },
		Write: func(_ context.Context, w io.Writer) error {
			return writeDocument(w, &o.doc, o.doc.CanonicalURL, o.hash)
		},
	}
}
