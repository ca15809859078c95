package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/bench/feeder"
	stores "github.com/millrace/millrace/store/all"
)

const openfeederPages = 5000

// openfeeder measures the room of that name: its documents, searches, replies
// of what has changed on a site of n pages, and events.
func (b *bench) openfeeder(ctx context.Context, n int) error {
	file := filepath.Join(b.dir, "openfeeder.db")
	if err := openfeederFill(ctx, file, openfeederPages, synthetic); err != nil {
		return err
	}
	s, err := b.startFeeder(ctx, feeder.Task{File: file, Base: benchSite})
	if err != nil {
		return err
	}
	unmodified, err := b.feederPages(ctx, s)
	s.stop()
	if err != nil {
		return err
	}
	if err := b.feederSince(ctx, n, unmodified); err != nil {
		return err
	}
	for _, memory := range []int{0, 56} {
		if err := b.feederEvents(ctx, file, memory); err != nil {
			return err
		}
	}
	return b.feederSearch(ctx)
}

// openfeederFill makes a store of n pages.
func openfeederFill(ctx context.Context, file string, n int, page func(i int, url string) *millrace.Page) error {
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, benchSite, benchSite)
	if err != nil {
		return err
	}
	var batch []millrace.Change
	for i := range n {
		u := fmt.Sprintf("%sp/%d/", benchSite, i)
		batch = append(batch, millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: u}, Page: page(i, u)})
		if len(batch) == 500 || i == n-1 {
			if _, err := site.Apply(ctx, "bench", batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

// feederPages measures the index and the pages, and gives the rate of the 304.
func (b *bench) feederPages(ctx context.Context, s *feederServer) (unmodified float64, err error) {
	var index, pages []string
	for i := range openfeederPages {
		pages = append(pages, "/openfeeder?url="+url.QueryEscape(fmt.Sprintf("/p/%d/", i)))
		if i%10 == 0 {
			index = append(index, fmt.Sprintf("/openfeeder?page=%d", i/10+1))
		}
	}
	for _, part := range []struct {
		name   string
		paths  []string
		status int
		reach  float64
	}{
		{"index", index, http.StatusOK, 0.7},
		{"?url=", pages, http.StatusOK, 0.7},
		{"?url=", pages, http.StatusNotModified, 0.8},
	} {
		unmodified, err = b.feederRow(ctx, s, part.paths, part.status, row{
			what: fmt.Sprintf("OpenFeeder %s %d, warm, %d pages, wrk -t1 -c16", part.name, part.status, openfeederPages),
		}, part.reach)
		if err != nil {
			return 0, err
		}
	}
	return unmodified, nil
}

// feederRow compares random ones of some documents, which have all been asked
// for before, with a handler that only writes one of them.
func (b *bench) feederRow(ctx context.Context, s *feederServer, paths []string, status int, r row, reach float64) (float64, error) {
	targets := make([]target, 0, len(paths))
	for _, p := range paths {
		header, _, err := fetch(ctx, http.DefaultClient, s.url+p[1:])
		if err != nil {
			return 0, err
		}
		targets = append(targets, target{p, header.Get("Etag")})
	}
	header, body, err := fetch(ctx, http.DefaultClient, s.url+paths[len(paths)/2][1:]) // as one that hits
	if err != nil {
		return 0, err
	}
	script, err := b.random("openfeeder", targets)
	if err != nil {
		return 0, err
	}
	bare, stop, err := startPeer(ctx, response{Status: status, Header: header, Body: body})
	if err != nil {
		return 0, err
	}
	defer stop()
	rate := func(url string) func() (float64, error) {
		return func() (float64, error) { return b.load(ctx, url, script, status) }
	}
	peer, ours, err := alternate(rate(bare), rate(s.url))
	if err != nil {
		return 0, err
	}
	r.limit, r.ours = fmt.Sprintf("%.0f requests/s (bare net/http)", peer), fmt.Sprintf("%.0f requests/s", ours)
	r.ratio, r.reach, r.good = fmt.Sprintf("%.2f", ours/peer), fmt.Sprintf("%.1f", reach), ours/peer >= reach
	b.add(r)
	return ours, nil
}

// feederSince asks a site of n short pages what is new since its newest
// change, beside a 304 of a page.
func (b *bench) feederSince(ctx context.Context, n int, unmodified float64) error {
	file := filepath.Join(b.dir, fmt.Sprintf("openfeeder-%d.db", n))
	err := openfeederFill(ctx, file, n, func(i int, u string) *millrace.Page {
		p := synthetic(i, u)
		p.Blocks = p.Blocks[:1]
		return p
	})
	if err != nil {
		return err
	}
	s, err := b.startFeeder(ctx, feeder.Task{File: file, Base: benchSite})
	if err != nil {
		return err
	}
	defer s.stop()
	_, body, err := fetch(ctx, http.DefaultClient, s.url+"openfeeder")
	if err != nil {
		return err
	}
	var index struct {
		Token string `json:"sync_token"`
	}
	if err := json.Unmarshal(body, &index); err != nil {
		return err
	}
	since := target{path: "/openfeeder?since=" + url.QueryEscape(index.Token)}
	header, body, err := fetch(ctx, http.DefaultClient, s.url+since.path[1:])
	if err != nil {
		return err
	}
	if strings.Contains(string(body), `"url"`) {
		return fmt.Errorf("something is new: %s", body)
	}
	since.tag = header.Get("Etag")
	// The 304 of the same server, in turns.
	page := target{path: "/openfeeder?url=" + url.QueryEscape("/p/7/")}
	if header, _, err = fetch(ctx, http.DefaultClient, s.url+page.path[1:]); err != nil {
		return err
	}
	page.tag = header.Get("Etag")
	asked, err := b.random("openfeeder-since", []target{since})
	if err != nil {
		return err
	}
	beside, err := b.random("openfeeder-page", []target{page})
	if err != nil {
		return err
	}
	runs := 0
	for _, kind := range []struct {
		what   string
		status int
		fresh  bool
	}{
		{"with nothing new", http.StatusOK, false},
		{"with nothing new, asked with its ETag", http.StatusNotModified, false},
		{"with nothing new, each request another one that is in no cache", http.StatusOK, true},
	} {
		limit, ours, err := alternate(
			func() (float64, error) { return b.load(ctx, s.url, beside, http.StatusNotModified) },
			func() (float64, error) {
				if !kind.fresh {
					return b.load(ctx, s.url, asked, kind.status)
				}
				runs++
				return b.load(ctx, s.url, asked, kind.status, fmt.Sprintf("FRESH=%d", runs))
			})
		if err != nil {
			return err
		}
		r := row{
			what:  fmt.Sprintf("OpenFeeder ?since= %s, %d pages, wrk -t1 -c16", kind.what, n),
			limit: fmt.Sprintf("%.0f requests/s (304 of a page there; above: %.0f)", limit, unmodified),
			ours:  fmt.Sprintf("%.0f requests/s", ours), ratio: fmt.Sprintf("%.2f", ours/limit),
			good: ours >= 0.5*limit, reach: "0.5",
		}
		if kind.fresh {
			r.reach = ""
		}
		b.add(r)
	}
	return nil
}
