package gateway

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/millrace/millrace/internal/proxy"
)

// A compressed page gets its elements and stays compressed. Each piece is passed on as it
// arrives.
func TestRecode(t *testing.T) {
	html := "<!DOCTYPE html><html><head><title>A</title></head><body>" + strings.Repeat("the page, and ", 20_000) + "the end</body></html>"
	next := make(chan bool)
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html")
		h.Set("Etag", `"v1-gzip"`)
		if r.Header.Get("Accept-Encoding") != "gzip" {
			h.Set("X-Asked", r.Header.Get("Accept-Encoding"))
			_, _ = io.WriteString(w, html)
			return
		}
		h.Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		switch r.Header.Get("X-Case") {
		case "fixed":
			h.Set("Cache-Control", "no-transform")
		case "slow":
			h.Set("Etag", `"v2-gzip"`)
			_, _ = io.WriteString(z, html[:1000])
			_ = z.Flush()
			_ = http.NewResponseController(w).Flush()
			<-next
			_, _ = io.WriteString(z, html[1000:])
			_ = z.Close()
			return
		case "cut":
			_, _ = io.WriteString(z, html[:1000])
			_ = z.Flush()
			return
		case "empty":
			return
		}
		_, _ = io.WriteString(z, html)
		_ = z.Close()
	}), proxy.Options{}, setup{}, nil)
	plain := func(coded string) string {
		t.Helper()
		z, err := gzip.NewReader(strings.NewReader(coded))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	element := `<link rel="alternate" type="application/json" href="https://x.test/a/llm.json"/>` + "\n"
	want := strings.Replace(html, "</head>", element+"</head>", 1)

	for _, accept := range []string{"gzip", "br, gzip;q=0.5", "zstd, *;q=0.1"} {
		resp, got := send(t, "GET", b.url+"/a/", "", "Accept-Encoding", accept)
		h := resp.Header
		if h.Get("Content-Encoding") != "gzip" || h.Get("Vary") != "Accept-Encoding" || !strings.HasPrefix(h.Get("Etag"), `W/"v1-gzip~`) || plain(got) != want {
			t.Errorf("%s: %v", accept, h)
		}
		if resp, got = send(t, "HEAD", b.url+"/a/", "", "Accept-Encoding", accept); resp.Header.Get("Etag") != h.Get("Etag") || resp.Header.Get("Content-Encoding") != "gzip" || got != "" {
			t.Errorf("HEAD: %v", resp.Header)
		}
	}
	for _, accept := range []string{"identity", "br", "gzip;q=0", "gzip;q=0.000, *", ""} {
		if resp, got := send(t, "GET", b.url+"/a/", "", "Accept-Encoding", accept); got != want || resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("X-Asked") != "identity" {
			t.Errorf("%q: %v", accept, resp.Header)
		}
	}
	if resp, got := send(t, "GET", b.url+"/a/", "", "Accept-Encoding", "gzip", "X-Case", "fixed"); plain(got) != html || resp.Header.Get("Etag") != `"v1-gzip"` {
		t.Errorf("no-transform: %v", resp.Header)
	}

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/a/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Case", "slow")
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := plainClient(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, 1000)
	if _, err := io.ReadFull(z, begun); err != nil || !strings.HasPrefix(want, string(begun)) {
		t.Fatalf("%q %v", begun, err)
	}
	next <- true
	if rest, err := io.ReadAll(z); err != nil || string(begun)+string(rest) != want {
		t.Errorf("%d bytes more, %v", len(rest), err)
	}

	for _, name := range []string{"cut", "empty"} {
		r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Case", name)
		r.Header.Set("Accept-Encoding", "gzip")
		var body []byte
		if resp, err = plainClient(t).Do(r); err == nil {
			body, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if cut := name == "cut"; cut != (err != nil) {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
		}
	}
}

// While the limit of recoded pages is reached, other pages are requested without a coding.
func TestRecodings(t *testing.T) {
	begun, end := make(chan bool), make(chan bool)
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.Header.Get("X-Case") == "slow" {
			begun <- true
			<-end
		}
		_, _ = io.WriteString(w, r.Header.Get("Accept-Encoding"))
	}), proxy.Options{}, setup{}, nil)
	var slow sync.WaitGroup
	for range 32 {
		slow.Go(func() { send(t, "GET", b.url+"/a/", "", "Accept-Encoding", "gzip", "X-Case", "slow") })
		<-begun
	}
	if _, got := send(t, "GET", b.url+"/a/", "", "Accept-Encoding", "gzip"); !strings.HasSuffix(got, "identity") {
		t.Errorf("%q", got)
	}
	close(end)
	slow.Wait()
	if _, got := send(t, "GET", b.url+"/a/", "", "Accept-Encoding", "gzip"); !strings.HasSuffix(got, "gzip") {
		t.Errorf("%q", got)
	}
}
