package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// serve compares responses for a store of n pages, and then for a folder, with a handler that only
// writes the same bytes.
func (b *bench) serve(ctx context.Context, n int) error {
	file, err := b.fill(ctx, n)
	if err != nil {
		return err
	}
	if err := b.cold(ctx, file, n); err != nil {
		return err
	}
	s, err := b.startServer(ctx, file)
	if err != nil {
		return err
	}
	defer s.stop()
	paths := murls(n)
	for _, coding := range []string{"identity", "gzip", "br"} {
		for _, status := range []int{http.StatusOK, http.StatusNotModified} {
			reach := 0.95
			if status == http.StatusOK && coding != "identity" {
				reach = 0.9
			}
			what := fmt.Sprintf("M-URL %d, warm, %s, %d pages", status, coding, n)
			if err := b.against(ctx, s, what, paths, http.Header{"Accept-Encoding": {coding}}, status, reach); err != nil {
				return err
			}
		}
	}
	for _, coding := range []string{"identity", "gzip"} {
		what := fmt.Sprintf("llms.txt, %s, of %d pages", coding, n)
		if err := b.against(ctx, s, what, []string{"llms.txt"}, http.Header{"Accept-Encoding": {coding}}, http.StatusOK, 0.9); err != nil {
			return err
		}
	}
	program, err := startPeer(ctx, peerTask{Publish: n})
	if err != nil {
		return err
	}
	defer program.stop()
	what := fmt.Sprintf("M-URL 304, warm, gzip, %d pages, publish.Server in a program", n)
	if err := b.against(ctx, program, what, paths, http.Header{"Accept-Encoding": {"gzip"}}, http.StatusNotModified, 0.9); err != nil {
		return err
	}
	return b.serveFolder(ctx, 200)
}

// murls returns the paths of the M-URLs in a store created by [bench.fill].
func murls(n int) (paths []string) {
	for i := range n {
		paths = append(paths, fmt.Sprintf("p/%d/llm.json", i))
	}
	return paths
}

// serveFolder compares responses for a folder's HTML, with links inserted, and for its Markdown with
// a handler that only writes the same bytes.
func (b *bench) serveFolder(ctx context.Context, n int) error {
	dir := filepath.Join(b.dir, "served")
	var paths []string
	for i := range n {
		if err := writePage(dir, i, generate(i, n, 50)); err != nil {
			return err
		}
		if i > 0 {
			paths = append(paths, fmt.Sprintf("p/%d/", i))
		}
	}
	s, err := b.startServer(ctx, dir, "--store", filepath.Join(b.dir, "served.db"))
	if err != nil {
		return err
	}
	defer s.stop()
	browser := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}, "Accept-Encoding": {"gzip, deflate, br, zstd"}}
	for _, r := range []struct {
		what, accept, coding string
		status               int
		reach                float64
	}{
		{"Markdown by Accept", "text/markdown", "identity", http.StatusOK, 0.9},
		{"Markdown by Accept, gzip", "text/markdown", "gzip", http.StatusOK, 0.9},
		{"HTML, identity", "text/html", "identity", http.StatusOK, 0.85},
		{"HTML, 304", "text/html", "identity", http.StatusNotModified, 0.85},
		{"HTML, header fields of a browser", browser.Get("Accept"), browser.Get("Accept-Encoding"), http.StatusOK, 0.85},
	} {
		header := http.Header{"Accept": {r.accept}, "Accept-Encoding": {r.coding}}
		if err := b.against(ctx, s, fmt.Sprintf("folder of %d pages: %s", n, r.what), paths, header, r.status, r.reach); err != nil {
			return err
		}
	}
	page := paths[n/2]
	_, coded, err := get(ctx, plainClient, s.url+page, browser)
	if err != nil {
		return err
	}
	_, plain, err := get(ctx, plainClient, s.url+page, http.Header{"Accept": browser["Accept"], "Accept-Encoding": {"identity"}})
	if err != nil {
		return err
	}
	var zipped strings.Builder
	w := gzip.NewWriter(&zipped)
	_, err = w.Write(plain)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	ratio := float64(len(coded)) / float64(zipped.Len())
	b.add(row{
		what: fmt.Sprintf("bytes of such a page sent to a browser; %d bytes without coding", len(plain)), limit: fmt.Sprintf("%d (gzip)", zipped.Len()),
		ours: fmt.Sprint(len(coded)), ratio: fmt.Sprintf("%.2f", ratio), reach: "at most 1.05", good: ratio <= 1.05,
	})
	return nil
}

// coldPages is the number of M-URLs requested from a server that has just started, each
// once.
const coldPages = 10_000

// cold measures responses for M-URLs that are in no cache of the server.
func (b *bench) cold(ctx context.Context, file string, n int) error {
	const limit = 200 * time.Microsecond
	for _, coding := range []string{"identity", "gzip"} {
		s, err := b.startServer(ctx, file)
		if err != nil {
			return err
		}
		spent, err := askOnce(ctx, s, n, coding)
		s.stop()
		if err != nil {
			return err
		}
		b.add(row{
			what:  fmt.Sprintf("M-URL 200, cold, %s, %d of %d pages: processor time each", coding, min(n, coldPages), n),
			limit: limit.String(), ours: short(spent).String(), ratio: fmt.Sprintf("%.2f", spent.Seconds()/limit.Seconds()), reach: "at most 1", good: spent <= limit,
		})
	}
	return nil
}

// askOnce requests min(n, coldPages) of the n M-URLs, each once, and returns the server's mean
// processor time per request.
func askOnce(ctx context.Context, s *server, n int, coding string) (time.Duration, error) {
	before, err := quiet(ctx, s.pid)
	if err != nil {
		return 0, err
	}
	asked := min(n, coldPages)
	for i := range asked {
		// Select pages from all parts of the site, each only once.
		url := fmt.Sprintf("%sp/%d/llm.json", s.url, i*(n/asked))
		if _, _, err := get(ctx, plainClient, url, http.Header{"Accept-Encoding": {coding}}); err != nil {
			return 0, err
		}
	}
	after, err := processorOf(s.pid)
	return (after - before) / time.Duration(asked), err
}

// target is a resource to request: its path with the query, and its ETag with quotes.
type target struct{ path, tag string }

// random writes a wrk script that requests random targets with header fields. If the environment
// variable STATUS is 304, the script sends their ETags. If FRESH is set, the script makes each
// request unique with an additional parameter.
func (b *bench) random(name string, targets []target, header http.Header) (string, error) {
	data := filepath.Join(b.dir, name)
	f, err := os.Create(data)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriter(f)
	for _, t := range targets {
		fmt.Fprintf(w, "%s %s\n", t.path, t.tag)
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	var fields strings.Builder
	for name := range header {
		fmt.Fprintf(&fields, "wrk.headers[%q] = %q\n", name, header.Get(name))
	}
	script := filepath.Join(b.dir, name+".lua")
	return script, os.WriteFile(script, fmt.Appendf(nil, `
local paths, tags, n = {}, {}, 0
for line in io.lines(%q) do
  n = n + 1
  paths[n], tags[n] = line:match("^(%%S+) (%%S*)$")
end
local conditional, fresh, count = os.getenv("STATUS") == "304", os.getenv("FRESH"), 0
%smath.randomseed(42)
request = function()
  local i = math.random(n)
  if fresh then
    count = count + 1
    return wrk.format("GET", paths[i] .. "&fresh=" .. fresh .. "-" .. count)
  end
  if conditional then
    wrk.headers["If-None-Match"] = tags[i]
  end
  return wrk.format("GET", paths[i])
end
response = nil
`, data, fields.String()), 0o600)
}

// warm requests each path once, so that all responses are in the server's cache, and returns
// requests for the same paths that wrk can send: conditional ones if status is 304. The sample is
// the response for the middle path.
func (b *bench) warm(ctx context.Context, s *server, paths []string, header http.Header, status int) (q requests, sample response, err error) {
	var targets []target
	for i, p := range paths {
		h, body, err := get(ctx, plainClient, s.url+p, header)
		if err != nil {
			return q, sample, err
		}
		targets = append(targets, target{"/" + p, h.Get("Etag")})
		if i != len(paths)/2 {
			continue
		}
		if status == http.StatusNotModified {
			conditional := header.Clone()
			conditional.Set("If-None-Match", h.Get("Etag"))
			if h, body, err = get(ctx, plainClient, s.url+p, conditional); err != nil {
				return q, sample, err
			}
		}
		sample = response{status, h, body}
	}
	b.scripts++
	script, err := b.random(fmt.Sprintf("targets-%d", b.scripts), targets, header)
	return requests{script: script, status: status}, sample, err
}

// requests describes the requests that wrk sends.
type requests struct {
	script      string
	status      int
	connections int  // number of connections; 0 = 16
	fresh       bool // no request is sent twice
}

var (
	requested = regexp.MustCompile(`(\d+) requests in`)
	perSecond = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	failures  = regexp.MustCompile(`(?m)^\s*(Socket errors:.*|Non-2xx or 3xx responses:.*)$`)
)

// of returns a side that runs wrk against a server, for one second each turn.
func (q requests) of(s *server) side {
	if q.connections == 0 {
		q.connections = 16
	}
	return func(ctx context.Context) (work, error) {
		c := exec.CommandContext(ctx, "wrk", "-t1", fmt.Sprintf("-c%d", q.connections), "-d1s", "-s", q.script, s.url)
		c.Env = append(os.Environ(), "STATUS="+strconv.Itoa(q.status))
		if q.fresh {
			c.Env = append(c.Env, fmt.Sprintf("FRESH=%d", time.Now().UnixNano()))
		}
		var rate float64
		w, err := s.doing(func() (float64, error) {
			out, err := c.CombinedOutput()
			if err != nil {
				return 0, fmt.Errorf("wrk: %w\n%s", err, out)
			}
			if m := failures.Find(out); m != nil {
				return 0, fmt.Errorf("wrk at %s: %s", s.url, m)
			}
			n, found := requested.FindSubmatch(out), perSecond.FindSubmatch(out)
			if n == nil || found == nil {
				return 0, fmt.Errorf("wrk reported no rate:\n%s", out)
			}
			if rate, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
				return 0, err
			}
			return strconv.ParseFloat(string(n[1]), 64)
		})(ctx)
		w.passed = time.Duration(w.units / rate * 1e9) // excludes wrk's startup time
		return w, err
	}
}
