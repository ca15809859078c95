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

// openfeeder measures the OpenFeeder protocol: its documents, searches, the sync responses of a
// site of n pages, and events.
func (b *bench) openfeeder(ctx context.Context, n int) error {
	file := filepath.Join(b.dir, "openfeeder.db")
	if err := openfeederFill(ctx, file, openfeederPages, synthetic); err != nil {
		return err
	}
	s, err := b.startFeeder(ctx, feeder.Task{File: file, Base: benchSite})
	if err != nil {
		return err
	}
	err = b.feederPages(ctx, s.server)
	s.stop()
	if err != nil {
		return err
	}
	if err := b.feederSince(ctx, n); err != nil {
		return err
	}
	for _, memory := range []int{0, 56} {
		if err := b.feederEvents(ctx, file, memory); err != nil {
			return err
		}
	}
	return b.feederSearch(ctx)
}

// openfeederFill creates a store with n pages.
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

// feederPages measures responses with the index and with pages.
func (b *bench) feederPages(ctx context.Context, s *server) error {
	var index, pages []string
	for i := range openfeederPages {
		pages = append(pages, "openfeeder?url="+url.QueryEscape(fmt.Sprintf("/p/%d/", i)))
		if i%10 == 0 {
			index = append(index, fmt.Sprintf("openfeeder?page=%d", i/10+1))
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
		what := fmt.Sprintf("OpenFeeder %s %d, warm, %d pages", part.name, part.status, openfeederPages)
		if err := b.against(ctx, s, what, part.paths, http.Header{}, part.status, part.reach); err != nil {
			return err
		}
	}
	return nil
}

// feederSince compares requests for the changes since the newest change with a 304 of a page,
// on a site of n short pages.
func (b *bench) feederSince(ctx context.Context, n int) error {
	file := filepath.Join(b.dir, fmt.Sprintf("openfeeder-%d.db", n))
	err := openfeederFill(ctx, file, n, func(i int, u string) *millrace.Page {
		p := synthetic(i, u)
		p.Blocks = p.Blocks[:1]
		return p
	})
	if err != nil {
		return err
	}
	f, err := b.startFeeder(ctx, feeder.Task{File: file, Base: benchSite})
	if err != nil {
		return err
	}
	defer f.stop()
	s := f.server
	token, err := syncToken(ctx, s.url)
	if err != nil {
		return err
	}
	page, _, err := b.warm(ctx, s, []string{"openfeeder?url=" + url.QueryEscape("/p/7/")}, http.Header{}, http.StatusNotModified)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		what   string
		status int
		fresh  bool
		reach  float64
	}{
		{"with nothing new", http.StatusOK, false, 0.5},
		{"with nothing new, conditional by ETag", http.StatusNotModified, false, 0.5},
		{"with nothing new, each request different and uncached", http.StatusOK, true, 0},
	} {
		since, sample, err := b.warm(ctx, s, []string{"openfeeder?since=" + url.QueryEscape(token)}, http.Header{}, kind.status)
		if err != nil {
			return err
		}
		if strings.Contains(string(sample.Body), `"url"`) {
			return fmt.Errorf("unexpected changes: %s", sample.Body)
		}
		since.fresh = kind.fresh
		found, err := duel(ctx, b.turns, page.of(s), since.of(s))
		if err != nil {
			return err
		}
		b.add(found.row(fmt.Sprintf("OpenFeeder ?since= %s, %d pages, wrk -t1 -c16", kind.what, n), "requests", "304 of a page of that site", kind.reach))
	}
	return nil
}

// syncToken returns the current sync token of the server at a base URL.
func syncToken(ctx context.Context, base string) (string, error) {
	_, body, err := fetch(ctx, base+"openfeeder")
	if err != nil {
		return "", err
	}
	var index struct {
		Token string `json:"sync_token"`
	}
	err = json.Unmarshal(body, &index)
	return index.Token, err
}
