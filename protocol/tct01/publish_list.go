package tct01

import (
	"context"
	"fmt"
	"io"
	"strconv"

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

// lists returns the M-Sitemaps (1.7), which one pass writes together. Items are in
// the order of identities; an overview comes first in the first list.
func (p *publisher) lists(v millrace.View, over *tct.Overview) []*millrace.Document {
	site := v.Site()
	out := make([]*millrace.Document, p.shards(site))
	group := &millrace.Group{Write: func(ctx context.Context, to map[string]io.Writer) error {
		if err := writeLists(ctx, v, len(out), over, to); err != nil {
			return fmt.Errorf("%s: lists: %w", Name, err)
		}
		return nil
	}}
	for i := range out {
		path := listName(i, len(out))
		out[i] = &millrace.Document{
			Path:   path,
			Header: draft.Header(site.Time),
			OneTag: true,
			Large:  true,
			Names:  int64(site.Pages / len(out)),
			Group:  group,
			Write: func(ctx context.Context, w io.Writer) error {
				return group.Write(ctx, map[string]io.Writer{path: w})
			},
		}
		if i > 0 || site.Home == "/" && over == nil { // else what "/" leads to may be another page by now
			out[i].Touched = func(url string) bool { return touches(canon.Relative(site.Base, url), i, len(out)) }
		}
	}
	return out
}

// touches reports whether a change of a page can change the list: the page is
// in it, or one whose name depends on that page's presence, or the overview
// that stands for an absent home page.
func touches(identity string, i, shards int) bool {
	if shardOf(identity, shards) == i || identity == "/" && i == 0 {
		return true
	}
	_, after := draft.Names.Rivals(identity)
	for _, a := range after {
		if shardOf(a, shards) == i {
			return true
		}
	}
	return false
}

// writeLists writes some of the lists in one pass over the tags.
func writeLists(ctx context.Context, v millrace.View, shards int, over *tct.Overview, to map[string]io.Writer) error {
	site := v.Site()
	lists := make([]*tct.ListWriter, shards) // nil: not asked for
	for i := range lists {
		if w := to[listName(i, shards)]; w != nil {
			lists[i] = draft.NewListWriter(w, site)
		}
	}
	if lists[0] != nil && over != nil {
		if err := lists[0].Overview(over); err != nil {
			return err
		}
	}
	for t, err := range v.Tags(ctx, Name, "") {
		if err != nil {
			return err
		}
		if l := lists[shardOf(canon.Relative(site.Base, t.URL), shards)]; l != nil {
			if err := l.Page(t); err != nil {
				return err
			}
		}
	}
	for _, l := range lists {
		if l != nil {
			if err := l.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}
