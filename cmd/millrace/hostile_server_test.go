package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/agent"
)

// internet is a network in memory: names and their servers. Time is fake, so a host
// that never responds does not slow down a test.
type internet struct {
	mu    sync.Mutex
	hosts map[string]*place // by name and port
	conns []net.Conn        // all connections, to close at the end
	asked []string          // names and ports of connections
}

// place is a host of an internet.
type place struct {
	handler http.Handler
	tls     *tls.Config         // nil = plain HTTP
	raw     func(net.Conn)      // replaces the handler; it need not close
	addr    func() *net.TCPAddr // address of the name, per lookup; nil = not checked
	err     error               // error of dial
}

// bubble runs f in fake time. The fake clock starts at the real time plus set.
func bubble(t *testing.T, set time.Duration, f func(t *testing.T, n *internet)) {
	t.Helper()
	now := time.Now().Add(set)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		n := &internet{hosts: map[string]*place{}}
		f(t, n)
		n.close()
		time.Sleep(2 * time.Second) // for sleeping goroutines
	})
}

func (n *internet) put(name string, p *place) { n.hosts[name] = p }

func (n *internet) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.Close()
	}
}

// dial connects to a name and port.
func (n *internet) dial(_ context.Context, _, name string) (net.Conn, error) {
	n.mu.Lock()
	n.asked = append(n.asked, name)
	p := n.hosts[name]
	n.mu.Unlock()
	if p == nil {
		host, _, _ := net.SplitHostPort(name)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
	if p.err != nil {
		return nil, p.err
	}
	client, server := net.Pipe()
	n.mu.Lock()
	n.conns = append(n.conns, client, server)
	n.mu.Unlock()
	if p.raw != nil {
		go p.raw(server)
	} else {
		go p.serve(server)
	}
	if p.addr != nil {
		return addressed{client, p.addr()}, nil
	}
	return client, nil
}

func (p *place) serve(c net.Conn) {
	if p.tls != nil {
		c = tls.Server(c, p.tls)
	}
	once := &onceListener{conn: c, done: make(chan struct{})}
	srv := &http.Server{Handler: p.handler, ErrorLog: quiet, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed || s == http.StateHijacked {
			once.end()
		}
	}}
	_ = srv.Serve(once)
}

// onceListener returns one connection, and closes when that closes.
type onceListener struct {
	conn  net.Conn
	given atomic.Bool
	done  chan struct{}
	once  sync.Once
}

func (l *onceListener) Accept() (net.Conn, error) {
	if !l.given.Swap(true) {
		return l.conn, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *onceListener) end()           { l.once.Do(func() { close(l.done) }) }
func (l *onceListener) Close() error   { l.end(); return nil }
func (l *onceListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// addressed is a connection with a remote address.
type addressed struct {
	net.Conn
	addr *net.TCPAddr
}

func (c addressed) RemoteAddr() net.Addr { return c.addr }

// pulled is the result of a pull.
type pulled struct {
	code   int
	text   string // report as text
	stderr string
	report agent.Report
	took   time.Duration // in fake time
}

// pull runs a pull into a mirror.
func (n *internet) pull(t *testing.T, file string, args ...string) pulled {
	t.Helper()
	var out, errs buffer
	p := newProcess(environment(map[string]string{"HOME": filepath.Dir(file)}), strings.NewReader(""), &out, &errs)
	p.dial = n.dial
	began := time.Now()
	got := pulled{code: p.run(t.Context(), append([]string{"pull", "--store", file, "--json"}, args...))}
	got.took, got.stderr = time.Since(began), errs.String()
	if out.String() == "" {
		return got
	}
	if err := json.Unmarshal([]byte(out.String()), &got.report); err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", got.code, err, out.String(), got.stderr)
	}
	got.render(t)
	return got
}

// render sets the text of the report.
func (p *pulled) render(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	r := p.report
	r.SkippedN = len(r.Skipped)
	_ = agent.WriteText(&b, []*agent.Report{&r})
	p.text = b.String()
}

// trouble returns the error texts and codes of a pull: one per way, then the last.
func (p pulled) trouble() (texts, codes []string) {
	for _, w := range append(p.report.Ways, agent.Way{Error: p.report.Error, Code: p.report.Code}) {
		if w.Error != "" && !slices.Contains(texts, w.Error) {
			texts, codes = append(texts, w.Error), append(codes, w.Code)
		}
	}
	return texts, codes
}

// onward forwards requests to a server outside the bubble. It closes connections, because fake
// time does not advance while one is open.
func onward(to string) http.Handler {
	u, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		ErrorLog:  quiet,
	}
}

// turning is a server that responds correctly to some requests and wrongly to all later ones.
type turning struct {
	good, bad http.Handler
	left      atomic.Int64
	mu        sync.Mutex
	paths     []string
	cookies   []string
}

func newTurning(after int, good, bad http.Handler) *turning {
	s := &turning{good: good, bad: bad}
	s.left.Store(int64(after))
	return s
}

func (s *turning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.RequestURI())
	s.cookies = append(s.cookies, r.Header.Values("Cookie")...)
	s.mu.Unlock()
	if s.left.Add(-1) >= 0 {
		s.good.ServeHTTP(w, r)
		return
	}
	s.bad.ServeHTTP(w, r)
}

// recorder buffers a response, so that it can be changed later.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// answered returns the server's response to the request without its conditions.
func answered(good http.Handler, r *http.Request) *recorder {
	a := &recorder{header: http.Header{}, code: http.StatusOK}
	fresh := r.Clone(r.Context())
	fresh.Header.Del("If-None-Match")
	fresh.Header.Del("If-Modified-Since")
	good.ServeHTTP(a, fresh)
	return a
}

// spoiled changes correct responses into wrong ones.
func spoiled(good http.Handler, spoil func(r *http.Request, a *recorder)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answered(good, r)
		spoil(r, a)
		for k, v := range a.header {
			w.Header()[k] = v
		}
		if w.Header().Get("Content-Length") == "keep" {
			w.Header().Del("Content-Length")
		} else if a.code == http.StatusOK && r.Method != http.MethodHead {
			w.Header().Set("Content-Length", fmt.Sprint(a.body.Len()))
		}
		w.WriteHeader(a.code)
		_, _ = w.Write(a.body.Bytes())
	})
}

// always returns a handler that sends the same response to every request.
func always(code int, header http.Header, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
}

// unchanged fails if the pages of a mirror changed.
func unchanged(t *testing.T, before map[string]string, file, site string) {
	t.Helper()
	after := texts(t, file, site)
	for u, text := range before {
		if after[u] != text {
			t.Errorf("%s was %d bytes and is %d", u, len(text), len(after[u]))
		}
	}
	for u := range after {
		if _, ok := before[u]; !ok {
			t.Errorf("%s is new", u)
		}
	}
}

// texts returns the texts of the pages of a mirror.
func texts(t *testing.T, file, site string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for u, p := range storedPages(t, file, site, site) {
		out[u] = p.Title + "\n" + p.Text()
	}
	return out
}

// vias lists the values of `pull --via`; "" is the best way.
var vias = []string{"", webCrawl, "tct-01", "tct-00", "scp", "openfeeder", "arc"}

// by returns the flag for a way.
func by(via string) []string {
	if via == "" {
		return nil
	}
	return []string{"--via", via}
}

// quiet discards what servers log about their clients.
var quiet = slog.NewLogLogger(slog.DiscardHandler, 0)
