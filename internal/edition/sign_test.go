package edition

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// notary returns numbered signatures and the configured error.
type notary struct {
	mu    sync.Mutex
	count int
	again time.Duration
	err   error
}

func (n *notary) Sign(target string, status int, h http.Header) (input, signature string, again time.Time, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count++
	return fmt.Sprint("input ", n.count), fmt.Sprint(target, " ", status, " ", h.Get("Content-Digest"), " ", h.Get("Content-Type")), time.Now().Add(n.again), n.err
}

// Only responses with the bytes of a document are signed. They share a signature until
// it must be renewed.
func TestSigned(t *testing.T) {
	n := &notary{again: time.Hour}
	site := newMemSite(4)
	site.set("/a/b", "slash")
	s := newTestServer(t, site, &memProtocol{}, &Options{Signer: n})
	publish(t, s)
	for i, target := range []string{"/1.txt", "/even.txt", "/a%2Fb.txt", "/a/b.txt"} {
		for range 3 {
			w := ask(t, s, "GET", target)
			h := w.Header()
			want := target + " 200 " + h.Get("Content-Digest") + " " + h.Get("Content-Type")
			if w.Code == 0 && strings.Contains(target, "%") {
				break // the protocol has no such document
			}
			if h.Get("Signature") != want || h.Get("Content-Digest") == "" {
				t.Errorf("%d %s: signed %q, want %q", i, target, h.Get("Signature"), want)
			}
		}
	}
	first := n.count
	if first > 4 {
		t.Errorf("%d signatures of 4 documents", first)
	}
	if h := ask(t, s, "GET", "/1.txt", "Accept-Encoding", "gzip").Header(); !strings.Contains(h.Get("Signature"), h.Get("Content-Digest")) || n.count != first+1 {
		t.Errorf("coded: %v", h)
	}
	tag := ask(t, s, "GET", "/1.txt").Header().Get("Etag")
	for _, fields := range [][]string{
		{"GET", "/1.txt", "If-None-Match", tag},
		{"GET", "/even.txt", "Range", "bytes=0-1"},
		{"GET", "/even.txt", "Range", "bytes=1000000-"},
		{"GET", "/1.txt", "If-Match", `"none"`},
		{"HEAD", "/1.txt"},
		{"OPTIONS", "/1.txt"},
	} {
		w := ask(t, s, fields[0], fields[1], fields[2:]...)
		if h := w.Header(); h["Signature"] != nil || h["Signature-Input"] != nil || w.Code == 200 && fields[0] == "GET" {
			t.Errorf("%v: %d, %v", fields, w.Code, h)
		}
	}
	if n.count != first+1 {
		t.Errorf("%d signatures for responses that are not signed", n.count-first-1)
	}
	// Different bytes have a different signature.
	was := ask(t, s, "GET", "/1.txt").Header().Get("Signature")
	site.set("/1", "changed")
	publish(t, s)
	if now := ask(t, s, "GET", "/1.txt").Header().Get("Signature"); now == was || now == "" {
		t.Errorf("after a change: %q", now)
	}
}

// An edition takes over the entries of unchanged documents during requests.
func TestSignedWhileEditionsChange(t *testing.T) {
	site := newMemSite(4)
	s := newTestServer(t, site, &memProtocol{}, &Options{Signer: &notary{again: time.Hour}})
	publish(t, s)
	var wg sync.WaitGroup
	defer wg.Wait()
	edited := make(chan struct{})
	defer close(edited)
	wg.Go(func() {
		for {
			select {
			case <-edited:
				return
			default:
			}
			if h := ask(t, s, "GET", "/even.txt").Header(); h.Get("Signature") == "" {
				t.Errorf("not signed: %v", h)
			}
		}
	})
	for i := range 20 {
		site.set("/1", fmt.Sprint("edit ", i))
		publish(t, s)
	}
}

// An expired signature is renewed. A response that cannot be signed is not sent.
func TestSignedAgain(t *testing.T) {
	n := &notary{again: -time.Second}
	s := newTestServer(t, newMemSite(1), &memProtocol{}, &Options{Signer: n})
	publish(t, s)
	ask(t, s, "GET", "/0.txt")
	if ask(t, s, "GET", "/0.txt"); n.count != 2 {
		t.Errorf("%d signatures", n.count)
	}
	n.err = millrace.ErrUnavailable
	w := httptest.NewRecorder()
	if _, err := s.Serve(w, httptest.NewRequest(http.MethodGet, "/0.txt", nil)); !errors.Is(err, millrace.ErrUnavailable) || w.Body.Len() > 0 {
		t.Errorf("%v, %q", err, w.Body)
	}
}

// A representation with several targets is signed for each of them.
func TestSignedTargets(t *testing.T) {
	n := &notary{again: time.Hour}
	e, err := prepare(sample(t, true, true), false, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	e.signer = n
	r := newRep(identity, []byte(body), len(body))
	for _, target := range []string{"/a", "/b?c", "/b", "/b", "/a"} {
		h := http.Header{}
		if err := e.sign(h, r, keyOf(httptest.NewRequest(http.MethodGet, target, nil).URL)); err != nil {
			t.Fatal(err)
		}
		if got := h.Get("Signature"); !strings.HasPrefix(got, target+" ") {
			t.Errorf("%s: %s", target, got)
		}
	}
	if n.count != 4 {
		t.Errorf("%d signatures", n.count)
	}
}

func BenchmarkSigned(b *testing.B) {
	for name, signer := range map[string]Signer{"not": nil, "signed": &notary{again: time.Hour}} {
		b.Run(name, func(b *testing.B) {
			s := newTestServer(b, newMemSite(3), &memProtocol{}, &Options{Signer: signer})
			publish(b, s)
			r := httptest.NewRequest(http.MethodGet, "/1.txt", nil)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				w.Body.Reset()
				clear(w.Header())
				if _, err := s.Serve(w, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
