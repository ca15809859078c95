package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

const (
	frontPages = 100     // of the site, all of them of the same bytes
	frontSize  = 100_000 // bytes of HTML
)

// front compares `millrace serve --origin`, which inserts links into the HTML of
// a site's server, with Go's own proxy of the same server, which does not.
func (b *bench) front(ctx context.Context) error {
	origin, stop, err := startFront(ctx, frontTask{Size: frontSize})
	if err != nil {
		return err
	}
	defer stop()
	peer, stopPeer, err := startFront(ctx, frontTask{Target: origin})
	if err != nil {
		return err
	}
	defer stopPeer()
	dir := filepath.Join(b.dir, "front")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i := range frontPages {
		page := fmt.Appendf(nil, "<!DOCTYPE html><html lang=en><head><title>Page %d</title></head><body><main><h1>Page %d</h1><p>%s.</p></main></body></html>",
			i, i, strings.Join(words, " "))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("page-%d.html", i)), page, 0o600); err != nil {
			return err
		}
	}
	s, err := b.startServer(ctx, dir, "--origin", origin)
	if err != nil {
		return err
	}
	defer s.stop()
	// It learns from its pages first, which the peer has nothing of.
	if err := settle(ctx, s.pid); err != nil {
		return err
	}
	for _, coded := range []bool{false, true} {
		if err := b.frontOf(ctx, peer+"/", s.url, coded); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until a process has next to nothing to do, for a minute at most.
func settle(ctx context.Context, pid int) error {
	last := -100.0
	for range 60 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return err
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		user, err := strconv.ParseFloat(fields[11], 64) // in hundredths of a second
		if err != nil {
			return err
		}
		system, err := strconv.ParseFloat(fields[12], 64)
		if err != nil {
			return err
		}
		if user+system-last < 3 {
			return nil
		}
		last = user + system
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return nil
}

func (b *bench) frontOf(ctx context.Context, peer, ours string, coded bool) error {
	what, accept := "an origin without compression", ""
	if coded {
		what, accept = "an origin that compresses, asked for gzip", "gzip"
	}
	n, _, err := frontPage(ctx, ours+"page-7.html", accept)
	if err != nil {
		return err
	}
	was, _, err := frontPage(ctx, peer+"page-7.html", accept)
	if err != nil {
		return err
	}
	if !coded && n <= was {
		return fmt.Errorf("nothing was inserted: %d bytes, %d from the origin", n, was)
	}
	script := filepath.Join(b.dir, "front.lua")
	if err := os.WriteFile(script, fmt.Appendf(nil, `
math.randomseed(42)
request = function()
  return wrk.format("GET", "/page-" .. math.random(0, %d) .. ".html", {["Accept-Encoding"] = %q})
end
`, frontPages-1, accept), 0o600); err != nil {
		return err
	}
	rate := func(url string) func() (float64, error) {
		return func() (float64, error) { return b.load(ctx, url, script, http.StatusOK) }
	}
	limit, got, err := alternate(rate(peer), rate(ours))
	if err != nil {
		return err
	}
	r := row{
		what:  fmt.Sprintf("100 kB of HTML through serve --origin with links inserted, %s, wrk -t1 -c16", what),
		limit: fmt.Sprintf("%.0f requests/s of %d bytes (httputil.ReverseProxy, nothing inserted)", limit, was),
		ours:  fmt.Sprintf("%.0f requests/s of %d bytes", got, n), ratio: fmt.Sprintf("%.2f", got/limit),
	}
	if !coded {
		r.reach, r.good = "0.9", got/limit >= 0.9
	}
	b.add(r)

	first := func(url string) func() (float64, error) {
		return func() (float64, error) {
			var all []float64
			for i := range 300 {
				_, took, err := frontPage(ctx, fmt.Sprintf("%spage-%d.html", url, i), accept)
				if err != nil {
					return 0, err
				}
				all = append(all, took.Seconds()*1000)
			}
			return median(all), nil
		}
	}
	if limit, got, err = alternate(first(peer), first(ours)); err != nil {
		return err
	}
	r = row{
		what:  fmt.Sprintf("the same, first byte of the page, one client, the median of 300, %s", what),
		limit: fmt.Sprintf("%.2f ms (httputil.ReverseProxy)", limit), ours: fmt.Sprintf("%.2f ms", got), ratio: fmt.Sprintf("%+.2f ms", got-limit),
	}
	if !coded {
		r.reach, r.good = "within 1 ms", got-limit <= 1
	}
	b.add(r)
	return nil
}

var frontClient = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// frontPage gets a page, and gives its length and when its first byte was there.
func frontPage(ctx context.Context, url, accept string) (n int64, first time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Accept-Encoding", accept)
	began := time.Now()
	resp, err := frontClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return 0, 0, err
	}
	first = time.Since(began)
	n, err = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK && err == nil {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return n + 1, first, err
}

// frontTask is what a process of this program is beside millrace: a site's
// server, or the proxy of one.
type frontTask struct {
	Target  string
	Size    int  // bytes of HTML
	Private bool // no page may be stored
}

func startFront(ctx context.Context, t frontTask) (url string, stop func(), err error) {
	_, url, stop, err = startHelper(ctx, "MILLRACE_BENCH_FRONT", t)
	return url, stop, err
}

// frontProcess is such a process. Its collector is as lazy as that of
// `millrace serve`.
func frontProcess(addr string) {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(104 << 20)
	var t frontTask
	var handler http.Handler
	err := json.NewDecoder(os.Stdin).Decode(&t)
	if err == nil {
		handler, err = t.handler()
	}
	var ln net.Listener
	if err == nil {
		ln, err = new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	}
	if err == nil {
		fmt.Print("up\n")
		err = (&http.Server{Handler: handler}).Serve(ln)
	}
	panic("bench: " + err.Error())
}

func (t *frontTask) handler() (http.Handler, error) {
	if t.Target == "" {
		return frontOrigin(t)
	}
	at, err := url.Parse(t.Target)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(at); r.Out.Host = r.In.Host; r.SetXForwarded() },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		BufferPool: &frontBuffers{},
	}, nil
}

// frontOrigin is a site whose every page has the same bytes, which are
// compressed beforehand.
func frontOrigin(t *frontTask) (http.Handler, error) {
	var html bytes.Buffer
	html.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>A page</title>\n" +
		"<link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n<body>\n")
	seed := uint32(1)
	for html.Len() < t.Size-20 {
		seed = seed*1664525 + 1013904223
		html.WriteString(words[seed>>16%uint32(len(words))])
		html.WriteByte(" \n"[seed>>28&1])
	}
	html.WriteString("\n</body>\n</html>\n")
	var coded bytes.Buffer
	w := gzip.NewWriter(&coded)
	if _, err := w.Write(html.Bytes()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, body := w.Header(), html.Bytes()
		h.Set("Content-Type", "text/html; charset=utf-8")
		if h.Set("Etag", `"v1"`); t.Private {
			h.Set("Cache-Control", "private")
		}
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			body = coded.Bytes()
			h.Set("Content-Encoding", "gzip")
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}), nil
}

// frontBuffers are the buffers of the proxy beside millrace.
type frontBuffers struct{ pool sync.Pool }

// Get implements [httputil.BufferPool].
func (b *frontBuffers) Get() []byte {
	if p, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return p[:]
	}
	return make([]byte, 32<<10)
}

// Put implements [httputil.BufferPool].
func (b *frontBuffers) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }
