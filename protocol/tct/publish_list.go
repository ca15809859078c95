package tct

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// maxShards keeps the root's Link fields, one per list, below 5 KB, which servers and clients
// accept in a header.
const maxShards = 64

// shards returns the number of lists, which is a power of two. It leaves room for a tenth more
// pages, because a hash does not fill all lists evenly.
func (p *publisher) shards(site millrace.Site) int {
	n := 1
	for !p.OneList && site.Pages > p.listItems && n < maxShards && float64(n)*float64(p.listItems)*0.9 < float64(site.Pages) {
		n *= 2
	}
	return n
}

// listName returns the path of one list. The path contains the number of lists, so a client with an
// old path does not get a list that lacks half of its pages.
func (d *draft) listName(i, shards int) string {
	if shards == 1 {
		return d.List + ".json"
	}
	return d.List + "-" + strconv.Itoa(i+1) + "-of-" + strconv.Itoa(shards) + ".json"
}

// shardOf returns the index of a page's list. It is the FNV-1a hash (64 bits) of the page's path,
// folded, because the low bits of the hash depend on few bits of each byte.
func shardOf(pagePath string, shards int) int {
	h := uint64(14695981039346656037)
	for i := range len(pagePath) {
		h = (h ^ uint64(pagePath[i])) * 1099511628211
	}
	h ^= h >> 32
	h ^= h >> 16
	return int(h & uint64(shards-1))
}

// lists returns the lists, and the overview of a site without a home page. The items are ordered by
// path, except that an overview comes first, and also the home page if OneList is set.
func (p *publisher) lists(ctx context.Context, v millrace.View) ([]*millrace.Document, error) {
	site := v.Site()
	over, err := p.overview(ctx, v)
	if err != nil {
		return nil, err
	}
	var home *millrace.Tag
	if p.OneList {
		t, err := p.Home(ctx, v)
		if err == nil {
			home = &t
		} else if !errors.Is(err, millrace.ErrNotFound) {
			return nil, err
		}
	}
	h := p.Header(site.Time)
	if p.policy != nil && p.PolicyPath != "" {
		h["Link"] = []string{millrace.Link{URL: rooted(site, p.PolicyPath), Rel: "describedby"}.String()}
	}
	if p.ListProfile != "" {
		h["Link"] = append(h["Link"], millrace.Link{URL: p.ListProfile, Rel: "profile"}.String())
	}
	shards := p.shards(site)
	var out []*millrace.Document
	for i := range shards {
		first, in := over, func(pagePath string) bool { return shardOf(pagePath, shards) == i }
		if i > 0 {
			first = nil
		}
		if shards == 1 {
			in = nil
		}
		parts := p.parts(v, first, home, in)
		out = append(out, &millrace.Document{
			Path: p.listName(i, shards), Header: h, SharedETag: true, DigestETag: p.Exact, Large: true, Subject: millrace.Subject{PageCount: int64(site.Pages / shards)},
			Parts: parts, Write: parts.Write,
		})
	}
	if over != nil {
		out = append(out, p.overviewDocument(over))
	}
	return out, nil
}

// rooted returns the path of a document on its host.
func rooted(site millrace.Site, name string) string {
	if u, err := url.Parse(site.EndpointBase); err == nil {
		return strings.TrimSuffix(u.EscapedPath(), "/") + name
	}
	return name
}

// first is the key of the first item of a list. It precedes all paths.
const first = " "

// parts returns the parts of a list: the item of the overview or of the home page, if any, and the
// items of the pages for which in returns true, ordered by path. in may be nil.
func (d *draft) parts(v millrace.View, over *overview, home *millrace.Tag, in func(docPath string) bool) *millrace.Parts {
	site := v.Site()
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	var buf []byte
	item := func(curl, path, modified, tag string) []byte {
		it := listItem{CURL: curl, MURL: docs + path, Modified: date(modified), ContentHash: tag, ETag: tag}
		buf = d.appendItem(buf[:0], &it)
		return buf
	}
	page := func(t millrace.Tag) []byte { return item(t.URL, d.path(site, t), kit.FormatTime(t.Modified), t.Value) }
	homeURL, homeIdentity := "", ""
	if home != nil {
		homeURL, homeIdentity = home.URL, canon.Relative(site.Base, home.URL)
	}
	return &millrace.Parts{
		Version: fmt.Sprintf("%q %q %q %t", site.Base, site.EndpointBase, homeURL, over != nil),
		Head:    []byte(d.ListHead + d.ListBreak), Separator: []byte("," + d.ListBreak), Tail: []byte(d.ListTail), Empty: []byte(d.ListHead + d.ListTail),
		After: func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
			return func(yield func(millrace.Part, error) bool) {
				if key < first {
					if over != nil && !yield(millrace.Part{Key: first, Body: item(over.CanonicalURL, over.path, over.Modified, over.tag)}, nil) ||
						home != nil && !yield(millrace.Part{Key: first, Body: page(*home)}, nil) {
						return
					}
				}
				for t, err := range v.Tags(ctx, d.Name, strings.TrimPrefix(key, first)) {
					if err != nil {
						yield(millrace.Part{}, err)
						return
					}
					pagePath := canon.Relative(site.Base, t.URL)
					if t.URL == homeURL || in != nil && !in(pagePath) {
						continue
					}
					if !yield(millrace.Part{Key: pagePath, Body: page(t)}, nil) {
						return
					}
				}
			}
		},
		Changed: func(url string) (keys []string) {
			if over != nil {
				keys = append(keys, first)
			}
			changed := canon.Relative(site.Base, url)
			_, after := d.Names.Conflicts(changed) // the M-URLs of these pages may have changed
			for _, i := range append(after, changed) {
				if i == homeIdentity {
					keys = append(keys, first)
				} else if in == nil || in(i) {
					keys = append(keys, i)
				}
			}
			return keys
		},
	}
}
