package gateway

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/conns"
)

// certificate writes a certificate of 127.0.0.1 and its key, and returns their files. The name
// distinguishes certificates.
func certificate(t *testing.T, dir, name string, until time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// speaking returns a client that accepts every certificate, and a function that returns the
// certificate name of the last connection.
func speaking(t *testing.T, protocols func(*http.Protocols)) (client *http.Client, name func() string) {
	t.Helper()
	var last atomic.Value
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			last.Store(s.PeerCertificates[0].Subject.CommonName)
			return nil
		}},
		Protocols: new(http.Protocols),
	}
	protocols(transport.Protocols)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, func() string { s, _ := last.Load().(string); return s }
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir, "one.test", time.Now().Add(90*24*time.Hour))
	var log safeBuffer
	certs, err := conns.LoadCertificates(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	address, _ := serve(t, setup{files: site()}.gateway(t), ServerOptions{TLS: certs})
	ask := func(c *http.Client) string {
		t.Helper()
		res, err := c.Get("https://" + address + "/a/llm.json")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(string(b), "{") {
			t.Errorf("%s %v %.100q", res.Status, err, b)
		}
		return res.Proto
	}
	two, name := speaking(t, func(p *http.Protocols) { p.SetHTTP2(true) })
	one, _ := speaking(t, func(p *http.Protocols) { p.SetHTTP1(true) })
	if a, b := ask(two), ask(one); a != "HTTP/2.0" || b != "HTTP/1.1" {
		t.Errorf("%s, %s", a, b)
	}
	if res, body := get(t, "http://"+address+"/healthz"); res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "HTTPS") {
		t.Errorf("HTTP to the port of https: %s %q", res.Status, body)
	}

	// New connections get the changed certificate. While the files do not match, the previous
	// one stays in use.
	certificate(t, dir, "two.test", time.Now().Add(20*time.Minute))
	certs.Reload()
	ask(two)
	if name() != "one.test" {
		t.Errorf("a connection has been replaced: %s", name())
	}
	two.CloseIdleConnections()
	if ask(two); name() != "two.test" {
		t.Errorf("the files have changed, and the certificate is %s", name())
	}
	if !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("the expiry of the certificate was not logged:\n%s", &log)
	}
	pair, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate(t, dir, "three.test", time.Now().Add(time.Hour))
	other, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range [][]byte{pair, []byte("no key"), nil} {
		if state == nil {
			err = os.Remove(key)
		} else {
			err = os.WriteFile(key, state, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		before := strings.Count(log.String(), "level=ERROR")
		certs.Reload()
		certs.Reload()
		if n := strings.Count(log.String(), "level=ERROR"); n != before+1 {
			t.Errorf("%q: logged %d times:\n%s", state, n-before, &log)
		}
		two.CloseIdleConnections()
		if ask(two); name() != "two.test" {
			t.Errorf("%q: the certificate is %s", state, name())
		}
	}
	// A key that becomes readable has the same size and time as before.
	if err := errors.Join(os.WriteFile(key, pair, 0o600), os.Chtimes(key, time.Time{}, time.Now().Add(-time.Hour))); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(key)
	if err != nil {
		t.Fatal(err)
	}
	certs.Reload()
	if err := errors.Join(os.WriteFile(key, other, 0o600), os.Chtimes(key, time.Time{}, info.ModTime())); err != nil {
		t.Fatal(err)
	}
	certs.Reload()
	two.CloseIdleConnections()
	if ask(two); name() != "three.test" {
		t.Errorf("the files are valid again, and the certificate is %s", name())
	}
}

func TestLoadCertificates(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir, "one.test", time.Now().Add(-time.Minute))
	var log safeBuffer
	certs, err := conns.LoadCertificates(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%v\n%s", err, &log)
	}
	if certs.Covers("one.test") != nil || certs.Covers("two.test") == nil {
		t.Error("Covers")
	}
	if c, err := conns.LoadCertificates(key, cert, nil); c != nil || millrace.ErrorCode(err) != "certificate-pair" {
		t.Errorf("exchanged: %v", err)
	}
	if _, err := conns.LoadCertificates(filepath.Join(dir, "none.pem"), key, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// safeBuffer is a buffer for concurrent writers.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Another gateway takes over under load. No request is refused, no response is cut off, and each
// request is completed by the gateway that received it.
func TestUse(t *testing.T) {
	begun, release := make(chan bool), make(chan bool)
	named := func(name string) *Gateway {
		return setup{o: Options{Origin: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow.txt" {
				io.WriteString(w, name)
				_ = http.NewResponseController(w).Flush()
				begun <- true
				<-release
			}
			io.WriteString(w, strings.Repeat(name, 10_000))
		})}}.gateway(t)
	}
	first := named("a")
	s := NewServer(first, nil)
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, ln) }()
	url := "http://" + ln.Addr().String()

	slow := make(chan string, 1)
	go func() {
		_, body := get(t, url+"/slow.txt")
		slow <- body
	}()
	<-begun
	var asks, seen [2]atomic.Int64 // by server name
	var clients sync.WaitGroup
	stop := make(chan bool)
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := http.Get(url + "/x.txt")
				if err != nil {
					t.Errorf("refused or interrupted: %v", err)
					return
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || len(b) != 10_000 || strings.Trim(string(b), string(b[:1])) != "" {
					t.Errorf("%v, %d bytes", err, len(b))
					return
				}
				asks[0].Add(1)
				seen[b[0]-'a'].Add(1)
			}
		})
	}
	wait := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	wait("no request was answered", func() bool { return seen[0].Load() > 50 })
	left := s.Use(named("b"))
	wait("the other gateway does not respond", func() bool { return seen[1].Load() > 50 })
	select {
	case <-left:
		t.Error("a request is pending, but the gateway counts as idle")
	default:
	}
	was := seen[0].Load()
	wait("the other gateway stopped responding", func() bool { return seen[1].Load() > 200 })
	if n := seen[0].Load() - was; n > 8 {
		t.Errorf("the previous gateway has answered %d more requests", n)
	}
	close(release)
	if body := <-slow; body != strings.Repeat("a", 10_001) {
		t.Errorf("the pending response: %d bytes", len(body))
	}
	select {
	case <-left:
	case <-time.After(5 * time.Minute):
		t.Error("no request is pending, but the gateway counts as busy")
	}
	close(stop)
	clients.Wait()
	if first.ending.Err() == nil {
		t.Error("streams stay at a gateway that sends no more events")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A client that floods an HTTP/2 connection is disconnected or limited. Other clients are served
// in the meantime.
func TestFloods(t *testing.T) {
	cert, key := certificate(t, t.TempDir(), "x.test", time.Now().Add(time.Hour))
	certs, err := conns.LoadCertificates(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan bool)
	var inside, most atomic.Int64
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.txt" {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			<-release
		}
	})
	address, _ := serve(t, setup{o: Options{Origin: origin}}.gateway(t), ServerOptions{TLS: certs, StopTimeout: time.Second})
	defer close(release)
	other, _ := speaking(t, func(p *http.Protocols) { p.SetHTTP2(true) })
	header := func(path string) []byte {
		var b bytes.Buffer
		e := hpack.NewEncoder(&b)
		for _, f := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "x.test"}, {Name: ":path", Value: path}} {
			_ = e.WriteField(f)
		}
		return b.Bytes()
	}
	ask := func(path string, stream uint32) http2.HeadersFrameParam {
		return http2.HeadersFrameParam{StreamID: stream, BlockFragment: header(path), EndStream: true, EndHeaders: true}
	}
	for name, c := range map[string]struct {
		flood func(f *http2.Framer, stream uint32) error
		want  string
	}{
		"streams that are reset": {func(f *http2.Framer, stream uint32) error {
			return errors.Join(f.WriteHeaders(ask("/slow.txt", stream)), f.WriteRSTStream(stream, http2.ErrCodeCancel))
		}, "ENHANCE_YOUR_CALM"},
		"headers that never end": {func(f *http2.Framer, stream uint32) error {
			if stream == 1 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header("/slow.txt")})
			}
			var b bytes.Buffer
			_ = hpack.NewEncoder(&b).WriteField(hpack.HeaderField{Name: fmt.Sprintf("x-%d", stream), Value: strings.Repeat("a", 1000)})
			return f.WriteContinuation(1, false, b.Bytes())
		}, "PROTOCOL_ERROR"},
		"more streams than allowed": {func(f *http2.Framer, stream uint32) error {
			if stream > 8*maxConcurrent {
				return io.EOF // the refusals of many more streams would end the connection
			}
			return f.WriteHeaders(ask("/slow.txt", stream))
		}, "REFUSED_STREAM"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
			if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
				t.Fatal(err)
			}
			f := http2.NewFramer(conn, conn)
			if err := f.WriteSettings(); err != nil {
				t.Fatal(err)
			}
			codes := make(chan string, 1)
			go func() { // reads the error frame of the server
				for {
					switch frame, err := f.ReadFrame(); frame := frame.(type) {
					case *http2.GoAwayFrame:
						codes <- frame.ErrCode.String()
						return
					case *http2.RSTStreamFrame:
						codes <- frame.ErrCode.String()
						return
					default:
						if err != nil { // the frame may be lost with the connection
							codes <- "end"
							return
						}
					}
				}
			}()
			var word string
			for i := 0; word == ""; i++ {
				err := c.flood(f, uint32(2*i+1))
				select {
				case word = <-codes:
				default:
					if err != nil {
						word = <-codes
					}
				}
			}
			if word != c.want && (word != "end" || c.want == "REFUSED_STREAM") {
				t.Errorf("the server sent %q, want %s", word, c.want)
			}
			res, err := other.Get("https://" + address + "/healthz")
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("another client: %v %v", res, err)
			}
			res.Body.Close()
			if n := most.Load(); n > 2*maxConcurrent {
				t.Errorf("%d requests of one connection are answered concurrently", n)
			}
		})
	}
}
