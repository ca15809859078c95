package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	answerPages  = 100 // of each site
	answerRounds = 5   // of one second for each side
)

// answers compares every prepared answer with what it stands in for: bare
// net/http with the same header and bytes, and httputil.ReverseProxy in front of
// a site's server.
func (b *bench) answers(ctx context.Context) error {
	if err := b.answersOfStore(ctx); err != nil {
		return err
	}
	if err := b.answersOfFolder(ctx); err != nil {
		return err
	}
	return b.answersOfOrigin(ctx)
}

// answersOfStore measures documents of pages.
func (b *bench) answersOfStore(ctx context.Context) error {
	file, err := b.fill(ctx, answerPages)
	if err != nil {
		return err
	}
	s, err := b.startServer(ctx, file)
	if err != nil {
		return err
	}
	defer s.stop()
	for _, m := range []answerTo{
		{what: "M-URL", path: "p/%d/llm.json", reach: 0.95},
		{what: "M-URL 304", path: "p/%d/llm.json", reach: 0.95, status: http.StatusNotModified},
		{what: "M-URL in gzip", path: "p/%d/llm.json", coding: "gzip", reach: 0.9},
		{what: "M-URL in br", path: "p/%d/llm.json", coding: "br", reach: 0.9},
		{what: "llms.txt", path: "llms.txt", reach: 0.9},
		{what: "llms.txt in gzip", path: "llms.txt", coding: "gzip", reach: 0.9},
	} {
		if err := b.besideBare(ctx, s, m); err != nil {
			return err
		}
	}
	return nil
}

// answersOfFolder measures the HTML of a folder.
func (b *bench) answersOfFolder(ctx context.Context) error {
	dir := filepath.Join(b.dir, "answers")
	if err := answerFolder(dir); err != nil {
		return err
	}
	s, err := b.startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := settle(ctx, s.pid); err != nil {
		return err
	}
	for _, m := range []answerTo{
		{what: "30 kB of HTML of a folder, links inserted", path: "page-%d.html", reach: 0.85},
		{what: "the same, 304", path: "page-%d.html", reach: 0.85, status: http.StatusNotModified},
		{what: "the same, gzip", path: "page-%d.html", coding: "gzip", reach: 0.85},
		{what: "the same, as a browser asks", path: "page-%d.html", coding: "gzip, deflate, br, zstd", accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", reach: 0.85},
		{what: "Markdown by Accept", path: "page-%d.html", accept: "text/markdown", reach: 0.9},
		{what: "Markdown by Accept in gzip", path: "page-%d.html", accept: "text/markdown", coding: "gzip", reach: 0.9},
		{what: "llms.txt of a folder", path: "llms.txt", reach: 0.9},
	} {
		if err := b.besideBare(ctx, s, m); err != nil {
			return err
		}
	}
	return nil
}

// answersOfOrigin measures pages of a site's server.
func (b *bench) answersOfOrigin(ctx context.Context) error {
	dir := filepath.Join(b.dir, "answers-front")
	if err := answerFolder(dir); err != nil {
		return err
	}
	for _, o := range []struct {
		what   string
		task   frontTask
		coding string
		reach  float64
	}{
		{"cacheable, gzip", frontTask{Size: 72_000}, "gzip", 0.6},
		{"not cacheable, gzip", frontTask{Size: 72_000, Private: true}, "gzip", 0.2},
		{"cacheable, not compressed", frontTask{Size: 72_000}, "", 0.9},
		{"not cacheable, not compressed", frontTask{Size: 72_000, Private: true}, "", 0.9},
	} {
		_, origin, stop, err := startHelper(ctx, "MILLRACE_BENCH_FRONT", o.task)
		if err != nil {
			return err
		}
		pid, peer, stopPeer, err := startHelper(ctx, "MILLRACE_BENCH_FRONT", frontTask{Target: origin})
		if err != nil {
			stop()
			return err
		}
		s, err := b.startServer(ctx, dir, "--origin", origin)
		if err == nil {
			if err = settle(ctx, s.pid); err == nil {
				err = b.inTurns(ctx, answerTo{what: "a page of 72 kB through serve --origin, links inserted, " + o.what, path: "page-%d.html", coding: o.coding, reach: o.reach},
					&server{url: peer + "/", pid: pid}, s, "httputil.ReverseProxy, nothing inserted")
			}
			s.stop()
		}
		stopPeer()
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// answerFolder writes a site of pages of some 30 kB.
func answerFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i := range answerPages {
		var page strings.Builder
		fmt.Fprintf(&page, "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<title>Page %d</title>\n</head>\n<body>\n<main>\n<h1>Page %d</h1>\n", i, i)
		seed := uint32(i + 1)
		for page.Len() < 30_000 {
			page.WriteString("<p>")
			for range 60 {
				seed = seed*1664525 + 1013904223
				page.WriteString(words[seed>>16%uint32(len(words))] + " ")
			}
			page.WriteString("</p>\n")
		}
		page.WriteString("</main>\n</body>\n</html>\n")
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("page-%d.html", i)), []byte(page.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// answerTo is one kind of request.
type answerTo struct {
	what, path, accept, coding string
	status                     int // 0 = 200
	reach                      float64
}

// besideBare measures requests beside a handler that only writes one of the
// answers.
func (b *bench) besideBare(ctx context.Context, s *server, m answerTo) error {
	if m.status == 0 {
		m.status = http.StatusOK
	}
	header, body, err := m.ask(ctx, s.url, 7)
	if err != nil {
		return err
	}
	pid, url, stop, err := startHelper(ctx, "MILLRACE_BENCH_PEER", response{Status: m.status, Header: header, Body: body})
	if err != nil {
		return err
	}
	defer stop()
	return b.inTurns(ctx, m, &server{url: url + "/", pid: pid}, s, "bare net/http")
}

// ask sends the request for one page.
func (m *answerTo) ask(ctx context.Context, base string, page int) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+m.target(page), nil)
	if err != nil {
		return nil, nil, err
	}
	if req.Header.Set("Accept-Encoding", m.coding); m.accept != "" {
		req.Header.Set("Accept", m.accept)
	}
	resp, err := frontClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	return resp.Header, body, err
}

func (m *answerTo) target(page int) string {
	if strings.Contains(m.path, "%") {
		return fmt.Sprintf(m.path, page)
	}
	return m.path
}

// inTurns measures a peer and ours in alternating turns. The ratio is that of
// processor time for a request, medians of the turns.
func (b *bench) inTurns(ctx context.Context, m answerTo, peer, ours *server, limit string) error {
	if m.status == 0 {
		m.status = http.StatusOK
	}
	var paths strings.Builder
	for i := range answerPages {
		header, _, err := m.ask(ctx, ours.url, i)
		if err != nil {
			return err
		}
		fmt.Fprintf(&paths, "  {%q, %q},\n", "/"+m.target(i), header.Get("Etag"))
	}
	script := filepath.Join(b.dir, "answers.lua")
	if err := os.WriteFile(script, fmt.Appendf(nil, `
local targets = {
%s}
math.randomseed(42)
wrk.headers["Accept-Encoding"], wrk.headers["Accept"] = %q, %q
if wrk.headers["Accept"] == "" then wrk.headers["Accept"] = nil end
if wrk.headers["Accept-Encoding"] == "" then wrk.headers["Accept-Encoding"] = nil end
request = function()
  local t = targets[math.random(#targets)]
  if %t then wrk.headers["If-None-Match"] = t[2] end
  return wrk.format("GET", t[1])
end
`, &paths, m.coding, m.accept, m.status == http.StatusNotModified), 0o600); err != nil {
		return err
	}
	_, body, err := m.ask(ctx, ours.url, 7)
	if err != nil {
		return err
	}
	var times, rates [2][]float64
	for round := range answerRounds + 1 {
		for i, s := range []*server{peer, ours} {
			rate, micros, err := turn(ctx, s, script)
			if err != nil {
				return err
			}
			if round > 0 { // the first fills caches
				rates[i], times[i] = append(rates[i], rate), append(times[i], micros)
			}
		}
	}
	for i := range times {
		slices.Sort(times[i])
		slices.Sort(rates[i])
	}
	at := answerRounds / 2
	ratio := times[0][at] / times[1][at]
	b.add(row{
		what:  fmt.Sprintf("%s, %d bytes, wrk -t1 -c16", m.what, len(body)),
		limit: fmt.Sprintf("%.1f µs of processor time, %.0f requests/s (%s)", times[0][at], rates[0][at], limit),
		ours:  fmt.Sprintf("%.1f µs of processor time, %.0f requests/s", times[1][at], rates[1][at]),
		ratio: fmt.Sprintf("%.2f", ratio), reach: fmt.Sprintf("%.2f", m.reach), good: ratio >= m.reach,
	})
	return nil
}

var requestsIn = regexp.MustCompile(`(\d+) requests in`)

// turn asks a server for a second. It gives the rate, and the processor time
// that the server's process takes for a request, in microseconds.
func turn(ctx context.Context, s *server, script string) (rate, micros float64, err error) {
	before, err := processorSeconds(s.pid)
	if err != nil {
		return 0, 0, err
	}
	out, err := exec.CommandContext(ctx, "wrk", "-t1", "-c16", "-d1s", "-s", script, s.url).CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	after, err := processorSeconds(s.pid)
	if err != nil {
		return 0, 0, err
	}
	m, r, bad := requestsIn.FindSubmatch(out), perSecond.FindSubmatch(out), failures.Find(out)
	if m == nil || r == nil || bad != nil {
		return 0, 0, fmt.Errorf("wrk at %s: %s\n%s", s.url, bad, out)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0, 0, err
	}
	rate, err = strconv.ParseFloat(string(r[1]), 64)
	return rate, 1e6 * (after - before) / n, err
}
