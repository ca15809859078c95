package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

const (
	frontPages = 100    // number of pages of each kind, all with the same bytes
	frontSize  = 72_000 // bytes of HTML
)

// frontKinds are the kinds of pages of the site. Each kind has its own folder; see [coded].
var frontKinds = []struct {
	folder, what, accept string
	reach                float64
}{
	{"plain", "not compressed, cacheable", "identity", 0.9},
	{"private/plain", "not compressed, not cacheable", "identity", 0.9},
	{"gzip", "gzip of the origin, cacheable", "gzip", 0.6},
	{"private/gzip", "gzip of the origin, not cacheable", "gzip", 0.2},
}

// front compares `millrace serve --origin`, which inserts links into the HTML of a site's server,
// with Go's reverse proxy in front of the same server, which inserts no links.
func (b *bench) front(ctx context.Context) error {
	origin, err := startPeer(ctx, peerTask{Page: frontSize})
	if err != nil {
		return err
	}
	defer origin.stop()
	proxy, err := startPeer(ctx, peerTask{Proxy: origin.url})
	if err != nil {
		return err
	}
	defer proxy.stop()
	dir := filepath.Join(b.dir, "front")
	for _, k := range frontKinds {
		if err := os.MkdirAll(filepath.Join(dir, k.folder), 0o700); err != nil {
			return err
		}
		for i := range frontPages {
			page := fmt.Appendf(nil, "<!DOCTYPE html><html lang=en><head><title>Page %d</title></head><body><main><h1>Page %d, %s</h1><p>%s.</p></main></body></html>",
				i, i, k.folder, strings.Join(words, " "))
			if err := os.WriteFile(filepath.Join(dir, k.folder, fmt.Sprintf("page-%d.html", i)), page, 0o600); err != nil {
				return err
			}
		}
	}
	s, err := b.startServer(ctx, dir, "--origin", origin.url)
	if err != nil {
		return err
	}
	defer s.stop()
	// Wait until the server has read and indexed its pages.
	if _, err := quiet(ctx, s.pid); err != nil {
		return err
	}
	for _, k := range frontKinds {
		var paths []string
		for i := range frontPages {
			paths = append(paths, fmt.Sprintf("%s/page-%d.html", k.folder, i))
		}
		header := http.Header{"Accept-Encoding": {k.accept}}
		_, passed, err := b.warm(ctx, proxy, paths, header, http.StatusOK)
		if err != nil {
			return err
		}
		q, inserted, err := b.warm(ctx, s, paths, header, http.StatusOK)
		if err != nil {
			return err
		}
		was, err := passed.decoded()
		if err != nil {
			return err
		}
		if now, err := inserted.decoded(); err != nil || len(now) <= len(was) {
			return fmt.Errorf("no links were inserted: %d bytes, %d from the origin: %w", len(now), len(was), err)
		}
		what := fmt.Sprintf("%d bytes of HTML through serve --origin with links inserted, %s", len(was), k.what)
		found, err := duel(ctx, b.turns, q.of(proxy), q.of(s))
		if err != nil {
			return err
		}
		b.add(found.row(what+fmt.Sprintf(": %d bytes, %d from the peer, wrk -t1 -c16", len(inserted.Body), len(passed.Body)), "requests",
			"httputil.ReverseProxy, nothing inserted", k.reach))
		first := func(s *server) side {
			return func(ctx context.Context) (w work, err error) {
				var sum time.Duration // time until the first bytes
				w, err = s.doing(func() (float64, error) {
					for _, p := range paths {
						took, _, err := firstByte(ctx, plainClient, s.url+p, k.accept)
						if err != nil {
							return 0, err
						}
						sum += took
					}
					return float64(len(paths)), nil
				})(ctx)
				w.passed = sum
				return w, err
			}
		}
		if found, err = duel(ctx, b.turns, first(proxy), first(s)); err != nil {
			return err
		}
		more := time.Duration(1e9/found.Ours.Rate - 1e9/found.Peer.Rate)
		b.add(row{
			what: "the same, first byte of the page, one client", limit: short(time.Duration(1e9 / found.Peer.Rate)).String(),
			ours: short(time.Duration(1e9 / found.Ours.Rate)).String(), ratio: fmt.Sprintf("%+v", short(more)), reach: "within 1 ms", good: more <= time.Millisecond,
		})
	}
	return nil
}

// decoded returns the body without its content coding.
func (r *response) decoded() ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return r.Body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
