package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/internal/spool"
)

// Limits of the sitemaps of a site.
const (
	maxLists     = 1000      // maximum number of sitemaps
	maxList      = 100 << 20 // maximum number of bytes of one sitemap, unless the options set another limit
	maxEntries   = 1 << 20   // maximum number of entries of one sitemap; sitemaps.org allows 50,000
	sitemapTypes = "application/xml, text/xml, text/plain, */*;q=0.5"
)

// list is one sitemap with its validators, verbatim.
type list struct {
	kit.Resource
	Index bool `json:"index,omitempty"` // the sitemap is an index of the following sitemaps
	In    bool `json:"in,omitempty"`    // the sitemap is in an index
}

// file is a sitemap of pages with the response to its request.
type file struct {
	list
	at    *url.URL     // URL after redirects
	spool *spool.Spool // nil = not requested, or not changed
	same  bool         // whether the sitemap has not changed
}

func (f *file) close() {
	if f.spool != nil {
		f.spool.Close()
		f.spool = nil
	}
}

// open fetches one sitemap, conditionally if validators are stored. For an index, it returns the
// sitemaps in the index.
func (r *run) open(ctx context.Context, l list) (*file, []string, error) {
	f, err := r.load(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	if f.same {
		var children []string
		for i, c := range r.was.Lists {
			if c.URL == l.URL {
				for _, c := range r.was.Lists[i+1:] {
					if !c.In {
						break
					}
					children = append(children, c.URL)
				}
			}
		}
		return f, children, nil
	}
	f.Index = false
	var children []string
	err = f.entries(r.o.MaxList, func(e sitemap.Entry) error {
		if f.Index = e.Sitemap; !e.Sitemap {
			return kit.ErrStop
		}
		if u, err := canon.Resolve(f.at, e.URL); err == nil && (r.here(u) != "" || canon.Origin(u) == canon.Origin(l.URL)) {
			children = append(children, u)
		}
		return nil
	})
	if err != nil && !errors.Is(err, kit.ErrStop) && !f.Index {
		f.close()
		return nil, nil, fmt.Errorf("%s: sitemap %s: %w", Name, l.URL, err)
	}
	if f.Index {
		f.close()
	}
	return f, children, nil
}

// load fetches one sitemap, conditionally if l contains validators.
func (r *run) load(ctx context.Context, l list) (*file, error) {
	resp, err := r.Open(kit.Download(ctx, r.o.MaxList), "sitemap", l.URL, sitemapTypes, l.Validators)
	if errors.Is(err, millrace.ErrUnmodified) && l.Conditional() {
		return &file{list: l, same: true}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	f := &file{list: l, at: resp.Request.URL}
	f.Validators = fetch.ValidatorsOf(resp)
	body, err := fetch.Decode(resp)
	if err != nil {
		return nil, fmt.Errorf("%s: sitemap: %w", Name, err)
	}
	defer func() { _ = body.Close() }()
	if f.spool, err = spool.New(body, r.o.MaxList); err != nil {
		return nil, fmt.Errorf("%s: sitemap %s: %w", Name, l.URL, err)
	}
	return f, nil
}

// entries calls visit with each entry of a sitemap, until visit returns an error.
func (f *file) entries(limit int64, visit func(e sitemap.Entry) error) error {
	body, err := f.spool.Reader()
	if err != nil {
		return err
	}
	for e, err := range sitemap.Parse(body, &sitemap.Options{MaxBytes: limit, MaxEntries: maxEntries}) {
		if err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}
