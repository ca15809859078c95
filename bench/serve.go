package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// serve compares M-URLs of n pages with a handler that only writes.
func (b *bench) serve(ctx context.Context, n int, state string, reach float64) error {
	file, err := b.fill(ctx, n)
	if err != nil {
		return err
	}
	s, err := b.startServer(ctx, file)
	if err != nil {
		return err
	}
	defer s.stop()
	script, err := b.script(ctx, s.url)
	if err != nil {
		return err
	}
	header, body, err := fetch(ctx, http.DefaultClient, s.url+"p/7/llm.json")
	if err != nil {
		return err
	}
	for _, status := range []int{http.StatusOK, http.StatusNotModified} {
		if state == "cold" && status == http.StatusOK {
			continue
		}
		bare, stop, err := startPeer(ctx, response{Status: status, Header: header, Body: body})
		if err != nil {
			return err
		}
		rate := func(url string) func() (float64, error) {
			return func() (float64, error) { return b.load(ctx, url, script, status) }
		}
		if state == "warm" { // every page once, so that all are in the cache
			if _, err := rate(s.url)(); err != nil {
				stop()
				return err
			}
		}
		peer, ours, err := alternate(rate(bare), rate(s.url))
		stop()
		if err != nil {
			return err
		}
		b.add(row{
			what:  fmt.Sprintf("M-URL %d, %s, %d pages, wrk -t1 -c16", status, state, n),
			limit: fmt.Sprintf("%.0f requests/s (bare net/http)", peer), ours: fmt.Sprintf("%.0f requests/s", ours),
			ratio: fmt.Sprintf("%.2f", ours/peer), reach: fmt.Sprintf("%.1f", reach), good: ours/peer >= reach,
		})
	}
	return nil
}

// script writes a wrk script that asks for random M-URLs of the lists, with
// their ETags when STATUS is 304.
func (b *bench) script(ctx context.Context, base string) (string, error) {
	header, _, err := fetch(ctx, http.DefaultClient, base)
	if err != nil {
		return "", err
	}
	var targets []target
	index := regexp.MustCompile(`<([^>]+)>; rel="index"`)
	for _, link := range header.Values("Link") {
		m := index.FindStringSubmatch(link)
		if m == nil {
			continue
		}
		_, body, err := fetch(ctx, http.DefaultClient, base+strings.TrimPrefix(m[1], "/"))
		if err != nil {
			return "", err
		}
		var list struct{ Items []struct{ MURL, Etag string } }
		if err := json.Unmarshal(body, &list); err != nil {
			return "", err
		}
		for _, it := range list.Items {
			targets = append(targets, target{"/" + strings.TrimPrefix(it.MURL, base), `"` + it.Etag + `"`})
		}
	}
	return b.random("murls", targets)
}

// target is what a request asks for: the path with its query, and the ETag
// that it has, with quotes.
type target struct{ path, tag string }

// random writes a wrk script that asks for random targets, with their ETags
// when STATUS is 304. With FRESH, each request is one that nobody has made
// before, by a parameter that means nothing. AGENT is the user agent, FROM whom
// a proxy names.
func (b *bench) random(name string, targets []target) (string, error) {
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
	script := filepath.Join(b.dir, name+".lua")
	return script, os.WriteFile(script, fmt.Appendf(nil, `
local paths, tags, n = {}, {}, 0
for line in io.lines(%q) do
  n = n + 1
  paths[n], tags[n] = line:match("^(%%S+) (%%S+)$")
end
local conditional, fresh, count = os.getenv("STATUS") == "304", os.getenv("FRESH"), 0
wrk.headers["User-Agent"], wrk.headers["X-Forwarded-For"] = os.getenv("AGENT"), os.getenv("FROM")
math.randomseed(42)
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
`, data), 0o600)
}

var (
	perSecond = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	failures  = regexp.MustCompile(`(?m)^\s*(Socket errors:.*|Non-2xx or 3xx responses:.*)$`)
)

// load gives the requests per second that wrk reaches with 16 connections.
func (b *bench) load(ctx context.Context, url, script string, status int, env ...string) (float64, error) {
	return b.loadBy(ctx, 16, url, script, status, env...)
}

func (b *bench) loadBy(ctx context.Context, connections int, url, script string, status int, env ...string) (float64, error) {
	c := exec.CommandContext(ctx, "wrk", "-t1", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%ds", int(b.wrk.Seconds())), "-s", script, url)
	c.Env = append(append(os.Environ(), "STATUS="+strconv.Itoa(status)), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	if m := failures.Find(out); m != nil {
		return 0, fmt.Errorf("wrk at %s: %s", url, m)
	}
	m := perSecond.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("wrk said nothing of its rate:\n%s", out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// response is what the peer always answers.
type response struct {
	Status int
	Header http.Header
	Body   []byte
}

// startPeer starts this program as the peer: a process of its own, like ours.
func startPeer(ctx context.Context, r response) (url string, stop func(), err error) {
	_, url, stop, err = startHelper(ctx, "MILLRACE_BENCH_PEER", r)
	return url + "/", stop, err
}

// startHelper starts this program as a process of another kind, which the
// environment variable chooses, and which reads its task as JSON.
func startHelper(ctx context.Context, variable string, task any) (pid int, url string, stop func(), err error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, "", nil, err
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return 0, "", nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, "", nil, err
	}
	in, err := json.Marshal(task)
	if err != nil {
		return 0, "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := exec.CommandContext(ctx, exe)
	c.Env = append(os.Environ(), variable+"="+addr)
	c.Stdin, c.Stderr = bytes.NewReader(in), os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		cancel()
		return 0, "", nil, err
	}
	stop = func() { cancel(); _ = c.Wait() }
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		stop()
		return 0, "", nil, fmt.Errorf("process beside millrace: %w", err)
	}
	return c.Process.Pid, "http://" + addr, stop, nil
}

// peer is the limit: a handler that only writes the same bytes and headers.
func peer(addr string) {
	var r response
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		panic("bench: " + err.Error())
	}
	r.Header.Del("Date")
	r.Header.Del("Content-Length")
	if r.Status == http.StatusNotModified {
		r.Header.Del("Content-Type")
		r.Header.Del("Content-Digest")
		r.Body = nil
	} else {
		r.Header.Set("Content-Length", strconv.Itoa(len(r.Body)))
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		panic("bench: " + err.Error())
	}
	fmt.Print("up\n")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for k, v := range r.Header {
			h[k] = v
		}
		w.WriteHeader(r.Status)
		_, _ = w.Write(r.Body)
	})}
	if err := server.Serve(ln); err != nil {
		panic("bench: " + err.Error())
	}
}
