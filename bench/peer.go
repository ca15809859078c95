package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/publish"
)

// peerTask tells a child process of this program what to do. Exactly one field is set.
type peerTask struct {
	Answer    *response // serve this response to every request
	Proxy     string    // serve the site at this URL through httputil.ReverseProxy
	Folder    string    // serve the files of this folder
	Generated int       // serve this number of pages; see [generated]
	Publish   int       // serve this number of pages with [publish.Server]
	Page      int       // serve one page with this many bytes of HTML; see [coded]
	Abuse     *abuse    // do not serve; send these requests
}

// response is the constant response of a peer.
type response struct {
	Status int
	Header http.Header
	Body   []byte
}

// startPeer starts this program in a separate process and runs t there. The process exits when
// its standard input is closed.
func startPeer(ctx context.Context, t peerTask) (*server, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, exe)
	c.Env, c.Stderr = append(os.Environ(), "MILLRACE_BENCH_PEER=1"), os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, err
	}
	s := &server{pid: c.Process.Pid, stop: sync.OnceFunc(func() { _ = in.Close(); _ = c.Wait() })}
	if err = json.NewEncoder(in).Encode(t); err == nil {
		s.url, err = bufio.NewReader(out).ReadString('\n')
		s.url = strings.TrimSpace(s.url)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("peer process: %w", err)
	}
	return s, nil
}

// peer runs the task in the child process that startPeer starts.
func peer() error {
	in := json.NewDecoder(os.Stdin)
	var t peerTask
	if err := in.Decode(&t); err != nil {
		return err
	}
	if t.Abuse != nil {
		ctx, stop := context.WithCancel(context.Background())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		fmt.Println("started")
		t.Abuse.run(ctx)
		return nil
	}
	handler, err := t.handler()
	if err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Printf("http://%s/\n", ln.Addr())
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (t *peerTask) handler() (http.Handler, error) {
	if t.Answer != nil {
		t.Answer.Header.Del("Date")
		return t.Answer, nil
	}
	if t.Publish > 0 {
		return publishing(t.Publish)
	}
	// Use the garbage collector settings of `millrace serve`.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(104 << 20)
	switch {
	case t.Proxy != "":
		at, err := url.Parse(t.Proxy)
		return &httputil.ReverseProxy{
			Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(at); r.Out.Host = r.In.Host; r.SetXForwarded() },
			Transport:  &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
			BufferPool: &proxyBuffers{},
			ErrorLog:   log.New(io.Discard, "", 0), // wrk disconnects in the middle of responses
		}, err
	case t.Folder != "":
		return http.FileServer(http.Dir(t.Folder)), nil
	case t.Generated > 0:
		return generated(t.Generated), nil
	default:
		return coded(t.Page)
	}
}

// publishing returns the handler of a program that publishes its own pages with package publish.
func publishing(n int) (http.Handler, error) {
	source := publish.Pages(func(context.Context) iter.Seq2[*millrace.Page, error] {
		return func(yield func(*millrace.Page, error) bool) {
			for i := range n {
				if !yield(synthetic(i, fmt.Sprintf("%sp/%d/", benchSite, i)), nil) {
					return
				}
			}
		}
	})
	s, err := publish.New(context.Background(), source, &publish.Options{BaseURL: benchSite})
	if err != nil {
		return nil, err
	}
	return s, s.Ready(context.Background())
}

func (r *response) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	for k, v := range r.Header {
		h[k] = v
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body)
}

// coded serves one page under every path, precompressed with gzip if the client accepts gzip.
// Responses below /private/ are not cacheable.
func coded(size int) (http.Handler, error) {
	var html bytes.Buffer
	html.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>A page</title>\n" +
		"<link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n<body>\n")
	seed := uint32(1)
	for html.Len() < size-20 {
		seed = seed*1664525 + 1013904223
		html.WriteString(words[seed>>16%uint32(len(words))])
		html.WriteByte(" \n"[seed>>28&1])
	}
	html.WriteString("\n</body>\n</html>\n")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(html.Bytes()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, body := w.Header(), html.Bytes()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Vary", "Accept-Encoding")
		tag := `"v1"`
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			body, tag = zipped.Bytes(), `"v1-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
		if strings.HasPrefix(r.URL.Path, "/private/") {
			h.Set("Cache-Control", "private, no-store")
		} else {
			h.Set("Etag", tag)
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}), nil
}

// proxyBuffers is the buffer pool of the reverse proxy.
type proxyBuffers struct{ pool sync.Pool }

// Get implements [httputil.BufferPool].
func (b *proxyBuffers) Get() []byte {
	if p, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return p[:]
	}
	return make([]byte, 32<<10)
}

// Put implements [httputil.BufferPool].
func (b *proxyBuffers) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }
