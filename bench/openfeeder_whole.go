package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/bench/feeder"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// wholeManuals are manuals of Debian, with the target share of pages that fit into a default
// response.
var wholeManuals = []struct {
	name, dir string
	reach     float64
}{
	{"PostgreSQL", "/usr/share/doc/postgresql-doc-15/html", 0.90},
	{"git", "/usr/share/doc/git/html", 0.70},
	{"Python", "/usr/share/doc/python3.11/html", 0.65},
}

// whole measures what share of a page the default response to ?url= contains. It asks the
// protocol's publisher for each page of the manuals.
func (b *bench) whole(ctx context.Context) error {
	for _, m := range wholeManuals {
		pages, whole, median, err := wholeShare(ctx, filepath.Join(b.dir, m.name+".db"), m.dir)
		if err != nil {
			return err
		}
		b.add(row{
			what:  fmt.Sprintf("OpenFeeder ?url= of the %d pages of %s's manual, without limit: pages with a complete reply", pages, m.name),
			limit: fmt.Sprintf("%.0f %%", 100*m.reach), ours: fmt.Sprintf("%.1f %%; the median reply has %.0f %% of the page's text", 100*whole, 100*median),
			ratio: fmt.Sprintf("%.2f", whole/m.reach), reach: "1, and a median of 100 %", good: whole >= m.reach && median == 1,
		})
	}
	return nil
}

func wholeShare(ctx context.Context, file, dir string) (pages int, whole, median float64, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return 0, 0, 0, fmt.Errorf("%w; install Debian's postgresql-doc-15, git-doc and python3.11-doc", err)
	}
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, searchBase, searchBase)
	if err != nil {
		return 0, 0, 0, err
	}
	src, err := folder.New(dir, &folder.Options{Base: searchBase})
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { _ = src.Close() }()
	if _, err := mirror.Sync(ctx, "manual", src, site, nil); err != nil {
		return 0, 0, 0, err
	}
	pub, err := site.Publication(ctx, (&feeder.Task{Base: searchBase}).Config())
	if err == nil {
		_, err = pub.Refresh(ctx, store.Lease{}, 0, nil)
	}
	if err != nil {
		return 0, 0, 0, err
	}
	v, err := pub.Head(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	urls, err := feedURLs(ctx, v)
	if err != nil {
		return 0, 0, 0, err
	}
	proto := openfeeder.NewPublisher(nil)
	var shares []float64
	for _, u := range urls {
		first, more, err := feedChunks(ctx, proto, v, u, "")
		if err != nil {
			return 0, 0, 0, err
		}
		all := first
		for page := 2; more; page++ {
			var n int
			if n, more, err = feedChunks(ctx, proto, v, u, fmt.Sprintf("&page=%d", page)); err != nil {
				return 0, 0, 0, err
			}
			all += n
		}
		share := 1.0
		if all > 0 {
			share = float64(first) / float64(all)
		}
		if shares = append(shares, share); share == 1 {
			whole++
		}
	}
	slices.Sort(shares)
	return len(shares), whole / float64(len(shares)), shares[len(shares)/2], nil
}

// feedURLs returns the URLs of the pages that have an OpenFeeder document.
func feedURLs(ctx context.Context, v millrace.View) (urls []string, err error) {
	for p, err := range v.Scan(ctx, millrace.Scan{}) {
		if err != nil {
			return nil, err
		}
		if p.Kind != millrace.Archive {
			urls = append(urls, p.URL)
		}
	}
	return urls, nil
}

// feedChunks returns the number of characters in the chunks of a response, and whether
// more chunks follow.
func feedChunks(ctx context.Context, pub millrace.Publisher, v millrace.View, u, more string) (size int, rest bool, err error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/openfeeder?url="+url.QueryEscape(u)+more, nil)
	d, err := pub.Find(ctx, v, r)
	if err != nil {
		return 0, false, err
	}
	var body bytes.Buffer
	if err := d.Write(ctx, &body); err != nil {
		return 0, false, err
	}
	var reply struct {
		Chunks []struct{ Text string }
		Meta   struct {
			Page  int `json:"page"`
			Pages int `json:"total_pages"`
		}
	}
	if err := json.Unmarshal(body.Bytes(), &reply); err != nil {
		return 0, false, err
	}
	for _, c := range reply.Chunks {
		size += utf8.RuneCountInString(c.Text)
	}
	return size, reply.Meta.Page < reply.Meta.Pages, nil
}
