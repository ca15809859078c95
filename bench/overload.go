package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// abuse is a task of abusive clients, which send requests from their own addresses until they are
// stopped.
type abuse struct {
	Kind      string
	At        string // host and port of the server
	Clients   int
	Addresses int // number of local addresses, from 127.0.0.2

	connections, responses, refused atomic.Int64
}

// Kinds of abuse.
const (
	halfOpen       = "half-open connections"
	slowHeaders    = "slow headers"
	slowReaders    = "slow readers"
	searches       = "searches"
	misses         = "misses"
	pipelinedLists = "pipelined lists"
	eventStreams   = "SSE"
	logins         = "logins"
)

// overloadList is the list that slow and greedy clients request.
const overloadList = "/arc-sitemap.json"

// run sends requests until the context ends. In reality, the clients are other machines, so this
// process runs at the lowest priority.
func (a *abuse) run(ctx context.Context) {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19)
	var clients sync.WaitGroup
	for i := range a.Clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := a.connect(ctx, i); err != nil {
					rest(ctx, 50*time.Millisecond)
				}
			}
		})
	}
	clients.Wait()
	fmt.Fprintf(os.Stderr, "abuse: %s: %d connections, %d responses, %d of them refusals\n", a.Kind, a.connections.Load(), a.responses.Load(), a.refused.Load())
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// connect opens a connection of the i-th client and uses it until it fails or is closed.
func (a *abuse) connect(ctx context.Context, i int) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%a.Addresses))}, Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", a.At)
	if err != nil {
		return err
	}
	a.connections.Add(1)
	defer func() { _ = c.Close() }() // the connection cannot be used again
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	in, rng := bufio.NewReader(c), rand.New(rand.NewPCG(7, uint64(a.connections.Load())))
	switch a.Kind {
	case halfOpen:
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nX-A: ", a.At); err != nil {
			return err
		}
		_, _ = in.ReadByte() // blocks until the server closes the connection
		return nil
	case slowHeaders:
		for text := fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\nX-A: %s", a.At, strings.Repeat("a", 1000)); text != ""; text = text[1:] {
			if _, err := c.Write([]byte(text[:1])); err != nil {
				return err
			}
			rest(ctx, 500*time.Millisecond)
		}
		return nil
	case slowReaders:
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			return err
		}
		return a.exchange(ctx, c, in, 1, func() string { return overloadList })
	case searches:
		return a.exchange(ctx, c, in, 1, func() string {
			return "/openfeeder?q=" + url.QueryEscape(fmt.Sprintf("%s %s %s", words[rng.IntN(len(words))], words[rng.IntN(len(words))], words[rng.IntN(len(words))]))
		})
	case misses:
		return a.exchange(ctx, c, in, 1, func() string { return fmt.Sprintf("/p/%x/llm.json", rng.Uint64()) })
	case pipelinedLists:
		return a.exchange(ctx, c, in, 16, func() string { return overloadList })
	case eventStreams:
		if _, err := fmt.Fprintf(c, "GET /openfeeder/events HTTP/1.1\r\nHost: %s\r\n\r\n", a.At); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		defer func() { _, _ = c.Close(), res.Body.Close() }() // the stream never ends by itself
		a.count(res)
		_, err = res.Body.Read(make([]byte, 1))
		return err
	default:
		return a.logIn(c, in)
	}
}

// exchange sends requests, n at once, and reads their responses, until an error occurs.
func (a *abuse) exchange(ctx context.Context, c net.Conn, in *bufio.Reader, n int, path func() string) error {
	for {
		var text strings.Builder
		for range n {
			fmt.Fprintf(&text, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: identity\r\n\r\n", path(), a.At)
		}
		if _, err := io.WriteString(c, text.String()); err != nil {
			return err
		}
		for range n {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				return err
			}
			a.count(res)
			for err == nil && a.Kind == slowReaders {
				_, err = io.CopyN(io.Discard, res.Body, 1<<10)
				rest(ctx, 100*time.Millisecond)
			}
			if _, err := drain(res); err != nil {
				return err
			}
		}
	}
}

func (a *abuse) count(res *http.Response) {
	a.responses.Add(1)
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		a.refused.Add(1)
	}
}

var formToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// logIn fetches the login form of the dashboard and sends wrong passwords until an error occurs.
func (a *abuse) logIn(c net.Conn, in *bufio.Reader) error {
	read := func() (cookies []*http.Cookie, body []byte, err error) {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = res.Body.Close() }() // the body is read to its end
		a.count(res)
		body, err = io.ReadAll(res.Body)
		return res.Cookies(), body, err
	}
	if _, err := fmt.Fprintf(c, "GET /board/login HTTP/1.1\r\nHost: %s\r\n\r\n", a.At); err != nil {
		return err
	}
	cookies, body, err := read()
	if err != nil {
		return err
	}
	token := formToken.FindSubmatch(body)
	if token == nil || len(cookies) == 0 {
		return errors.New("no login form")
	}
	form := url.Values{"csrf": {string(token[1])}, "password": {"wrong"}}.Encode()
	for {
		if _, err := fmt.Fprintf(c, "POST /board/login HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nCookie: %s=%s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
			a.At, a.At, cookies[0].Name, cookies[0].Value, len(form), form); err != nil {
			return err
		}
		if _, _, err := read(); err != nil {
			return err
		}
	}
}

// goodClient is a client that pauses between requests. Its method ask returns the sorted delays of
// the responses and the number of failed requests. The delay of a failed request is at least
// goodLimit.
type goodClient struct {
	url      string
	pages    int
	new      bool // open a connection for each request
	requests int
}

const (
	goodLimit = 10 * time.Second     // time limit of a request
	goodPause = 5 * time.Millisecond // pause between two requests
	goodTime  = 20 * time.Second     // time limit of all requests
	goodStart = 2 * time.Second      // time between the start of the abuse and the first request
)

func (g goodClient) ask(ctx context.Context) (delays []time.Duration, failed int, err error) {
	t := &http.Transport{DisableCompression: true, DisableKeepAlives: g.new}
	defer t.CloseIdleConnections()
	client := &http.Client{Transport: t, Timeout: goodLimit}
	rng := rand.New(rand.NewPCG(1, 1))
	for end := time.Now().Add(goodTime); len(delays) < g.requests && time.Now().Before(end) && ctx.Err() == nil; time.Sleep(goodPause) {
		began := time.Now()
		_, _, err := get(ctx, client, fmt.Sprintf("%sp/%d/llm.json", g.url, rng.IntN(g.pages)), identity)
		took := time.Since(began)
		if err != nil {
			failed++
			took = max(took, goodLimit)
		}
		delays = append(delays, took)
	}
	slices.Sort(delays)
	return delays, failed, ctx.Err()
}

func p50(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

func p99(sorted []time.Duration) time.Duration { return sorted[(len(sorted)*99-1)/100] }

// overload measures the delay of a good client while others abuse the server, with each kind of abuse
// or, if kind is set, only with that kind.
func (b *bench) overload(ctx context.Context, n int, kind string) error {
	file, err := b.fill(ctx, n)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, b.binary, "keys", "password").Output()
	if err != nil {
		return err
	}
	s, err := b.startServer(ctx, file, "--dashboard", "/board", "--dashboard-password", passwordHash.FindString(string(out)))
	if err != nil {
		return err
	}
	defer s.stop()
	if err := ask(ctx, s.url, n, 20_000); err != nil { // warms up the server
		return err
	}
	for _, k := range []string{slowHeaders, slowReaders, searches, misses, pipelinedLists, eventStreams, logins, halfOpen} {
		if kind != "" && kind != k {
			continue
		}
		a := &abuse{Kind: k, At: strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/"), Clients: 200, Addresses: 200}
		g := goodClient{url: s.url, pages: n, requests: 1000}
		if k == halfOpen {
			a.Clients, a.Addresses, g.new = 10_000, 50, true
		}
		if err := b.underAbuse(ctx, s, g, a); err != nil {
			return err
		}
	}
	return nil
}

// underAbuse measures a good client, first alone and then with abusive clients.
func (b *bench) underAbuse(ctx context.Context, s *server, g goodClient, a *abuse) error {
	if err := rested(ctx, s.pid); err != nil {
		return err
	}
	alone, _, err := g.ask(ctx)
	if err != nil {
		return err
	}
	others, err := startPeer(ctx, peerTask{Abuse: a})
	if err != nil {
		return err
	}
	defer others.stop()
	rest(ctx, goodStart)
	loaded, failed, err := g.ask(ctx)
	if err != nil {
		return err
	}
	before, during := p99(alone), p99(loaded)
	r := row{
		what:  fmt.Sprintf("p99 delay of a client while %d others abuse the server with %s, each with its own address (p50 %v, then %v)", a.Clients, a.Kind, short(p50(alone)), short(p50(loaded))),
		limit: short(before).String() + " (without them)", ours: short(during).String(), reach: "at most 20",
	}
	factor := during.Seconds() / before.Seconds()
	r.good = factor <= 20 && failed == 0
	if a.Kind == halfOpen {
		const limit = 100 * time.Millisecond
		r.what = fmt.Sprintf("p99 delay of a new client while 10,000 half-open connections from 50 addresses are reopened immediately (%v without them)", short(before))
		factor = during.Seconds() / limit.Seconds()
		r.limit, r.reach, r.good = limit.String(), "below 1", factor < 1 && failed == 0
	}
	r.ratio = fmt.Sprintf("%.2f", factor)
	if failed > 0 {
		r.ours += fmt.Sprintf(", %d of %d failed", failed, len(loaded))
	}
	b.add(r)
	return nil
}
