package main

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// certified wraps a server in TLS with a self-signed certificate.
func certified(t *testing.T, name string, from, to time.Duration) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: now.Add(from), NotAfter: now.Add(to)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// A pull sends no request to a host with untrusted TLS, and reports the cause and the remedy
// in one line.
func TestPullTLS(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	old := func(c *tls.Config) *tls.Config { c.MaxVersion = tls.VersionTLS11; return c }
	for _, tt := range []struct {
		name string
		site func(t *testing.T) *place
		code string
	}{
		{"expired", func(t *testing.T) *place {
			return &place{tls: certified(t, "handbook.example", -90*day, -day)}
		}, "certificate"},
		{"not yet", func(t *testing.T) *place { return &place{tls: certified(t, "handbook.example", day, 90*day)} }, "certificate"},
		{"of another host", func(t *testing.T) *place {
			return &place{tls: certified(t, "other.example", -day, day)}
		}, "certificate"},
		{"self-signed", func(t *testing.T) *place {
			return &place{tls: certified(t, "handbook.example", -day, day)}
		}, "certificate"},
		{"old", func(t *testing.T) *place { return &place{tls: old(certified(t, "handbook.example", -day, day))} }, "tls"},
		{"no TLS", func(*testing.T) *place { return &place{} }, "no-tls"},
		{"silent", func(*testing.T) *place {
			return &place{raw: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }}
		}, "timeout-tls"},
		{"no server", func(*testing.T) *place {
			return &place{err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
		}, "connection-refused"},
		{"no such host", func(*testing.T) *place { return nil }, "dns-unknown"},
	} {
		for _, via := range []string{"", webCrawl, "tct-01"} {
			t.Run(tt.name+"/"+via, func(t *testing.T) {
				bubble(t, 0, func(t *testing.T, n *internet) {
					site := tt.site(t)
					if site != nil {
						site.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
							if r.TLS != nil {
								t.Error("a request was sent")
							}
						})
					}
					n.put("handbook.example:443", site)
					got := n.pull(t, filepath.Join(t.TempDir(), "m.db"), append(by(via), "https://handbook.example/")...)
					lines, codes := got.trouble()
					if got.code != exitFailure || len(lines) != 1 || codes[0] != tt.code || strings.Contains(lines[0], "x509") || len(lines[0]) > 350 {
						t.Errorf("exit %d: %q\n%s%s", got.code, lines, got.text, got.stderr)
					}
					if got.took > 5*time.Minute {
						t.Error(got.took)
					}
				})
			})
		}
	}
}

// A name resolves to a public address first and to a private one later.
func TestPullRebinding(t *testing.T) {
	t.Parallel()
	good, mirrors := manualSite(t)
	for _, via := range vias {
		file := copyStore(t, mirrors[via])
		before := texts(t, file, manual)
		bubble(t, 48*time.Hour, func(t *testing.T, n *internet) {
			var asked, lookups atomic.Int64
			n.put("handbook.example:80", &place{
				handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					w.Header().Set("Connection", "close")
					good.ServeHTTP(w, r)
				}),
				addr: func() *net.TCPAddr {
					if lookups.Add(1) <= 2 {
						return &net.TCPAddr{IP: net.IPv4(8, 8, 8, 8), Port: 80}
					}
					return &net.TCPAddr{IP: net.IPv4(192, 168, 1, 1), Port: 80}
				},
			})
			got := n.pull(t, file, append(by(via), manual)...)
			if _, codes := got.trouble(); got.code != exitFailure || len(codes) != 1 || codes[0] != "address-private" {
				t.Errorf("%q: exit %d: %q\n%s%s", via, got.code, codes, got.text, got.stderr)
			}
			if asked.Load() > 2 {
				t.Errorf("%q: %d requests reached the private address", via, asked.Load())
			}
			unchanged(t, before, file, manual)
		})
	}
}

// A clock that jumps back and forth costs only a few requests.
func TestPullClock(t *testing.T) {
	t.Parallel()
	good, mirrors := manualSite(t)
	for _, via := range vias {
		file := mirrors[via]
		before := texts(t, file, manual)
		for _, set := range []time.Duration{-time.Hour, -10 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour, 0} {
			bubble(t, set, func(t *testing.T, n *internet) {
				log := newTurning(1<<30, good, nil)
				n.put("handbook.example:80", &place{handler: log})
				got := n.pull(t, file, append(by(via), manual)...)
				if got.code != 0 || len(log.paths) > 100 || got.took > time.Minute || got.report.Seconds < 0 {
					t.Errorf("%q, set by %s: exit %d after %s, %d requests: %s%s", via, set, got.code, got.took, len(log.paths), got.text, got.stderr)
				}
				if via == "" { // another way may have another message
					after := texts(t, file, manual)
					for u := range before {
						before[u] = cmp.Or(after[u], before[u])
					}
				}
				unchanged(t, before, file, manual)
			})
		}
	}
}

// The list is suddenly empty. Pages are deleted only after a second pull sees the same.
func TestPullEmptied(t *testing.T) {
	t.Parallel()
	for _, proto := range all.Protocols() {
		file := filepath.Join(t.TempDir(), "m.db")
		s := protocoltest.Serve(proto, nil)
		show := func(n, seq int) {
			t.Helper()
			pages := make([]*millrace.Page, n)
			for i := range pages {
				pages[i] = &millrace.Page{
					URL: fmt.Sprintf("/p%d/", i), Title: fmt.Sprintf("Page %d", i), Language: "en", Modified: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC),
					Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: fmt.Sprintf("The text of page %d.", i)}}, Known: millrace.AllFields, Detail: millrace.DetailBlocks,
				}
			}
			pages[0].URL = "/"
			at := time.Now().Add(time.Duration(seq-10) * time.Minute).Truncate(time.Second)
			s.Now = at
			site := millrace.Site{Base: manual, Title: "A site", Seq: uint64(seq), Time: at}
			if err := s.Show(t.Context(), protocoltest.NewView(site, pages, proto.Tagger)); err != nil {
				t.Fatalf("%s: %v", proto.Name, err)
			}
		}
		pull := func() (got pulled) {
			bubble(t, 0, func(t *testing.T, n *internet) {
				n.put("handbook.example:80", &place{handler: s})
				got = n.pull(t, file, "--via", proto.Name, manual)
			})
			return got
		}
		show(20, 1)
		if got := pull(); got.code != 0 || got.report.Added != 20 {
			t.Fatalf("%s: exit %d: %s%s", proto.Name, got.code, got.text, got.stderr)
		}
		before := texts(t, file, manual)
		show(1, 2)
		got := pull()
		if got.report.UnconfirmedDeletions != 19 || got.report.Deleted != 0 {
			t.Errorf("%s: exit %d: %s%s", proto.Name, got.code, got.text, got.stderr)
		}
		unchanged(t, before, file, manual)
		show(20, 3)
		if got := pull(); got.code != 0 || got.report.UnconfirmedDeletions+got.report.Deleted != 0 {
			t.Errorf("%s, after its return: exit %d: %s%s", proto.Name, got.code, got.text, got.stderr)
		}
		unchanged(t, before, file, manual)
	}
}

// Credentials in links and lists are never sent.
func TestPullCredentialsInLinks(t *testing.T) {
	t.Parallel()
	const link = "http://somebody:topsecret@handbook.example/secret/"
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Link", `</list>; rel="index"; type="application/json"`)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!DOCTYPE html><title>Home</title><main><h1>Home</h1><p>Some words and <a href="`+link+`">a link</a> to follow, and <a href="/fine/">another</a>.</main>`)
	})
	mux.HandleFunc("/fine/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!DOCTYPE html><title>Fine</title><link rel="canonical" href="`+link+`"><main><h1>Fine</h1><p>Other words, which say something else than the home page.</main>`)
	})
	mux.HandleFunc("/sitemap.xml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>`+link+`</loc></url></urlset>`)
	})
	mux.HandleFunc("/list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"version":1,"items":[{"cUrl":"%[1]s","mUrl":"%[1]sllm.json","etag":"sha256-1"}]}`, link)
	})
	for _, via := range []string{"", webCrawl, "tct-01", "scp"} {
		bubble(t, 0, func(t *testing.T, n *internet) {
			n.put("handbook.example:80", &place{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" {
					t.Errorf("%q: credentials were sent for %s", via, r.URL)
				}
				mux.ServeHTTP(w, r)
			})})
			file := filepath.Join(t.TempDir(), "m.db")
			got := n.pull(t, file, append(by(via), manual)...)
			pages, err := json.Marshal(storedPages(t, file, manual, manual))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []string{got.text, got.stderr, fmt.Sprint(got.report), string(pages)} {
				if i := strings.Index(s, "topsecret"); i >= 0 {
					t.Errorf("%q: output has a secret: %.300s", via, s[max(0, i-150):])
				}
			}
			if via == webCrawl && (got.code != 0 || got.report.Added != 2) {
				t.Errorf("exit %d: %s%s", got.code, got.text, got.stderr)
			}
		})
	}
}
