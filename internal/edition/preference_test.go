package edition

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// A client that likes several codings alike gets the smallest file of a large
// document, whichever that is; one that likes one better gets that.
func TestSmallestCoding(t *testing.T) {
	const pages = 300
	site := newMemSite(0)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range pages {
		body := strings.Repeat("the wheel turns and the stones grind; ", 20)
		if i%2 == 1 {
			body = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, rng.Uint64())))
		}
		site.set("/"+strconv.Itoa(i), body)
	}
	p := newTestPress(t, site, &memRoom{}, nil)
	publish(t, p)
	for _, path := range []string{"/even.txt", "/odd.txt"} {
		sizes := make(map[string]int)
		best := ""
		for _, c := range []string{"gzip", "br", "zstd"} {
			w := ask(t, p, "GET", path, "Accept-Encoding", c)
			sizes[c] = w.Body.Len()
			if got := w.Header().Get("Content-Encoding"); got != c {
				t.Fatalf("%s: asked for %s, got %q", path, c, got)
			}
			if best == "" || sizes[c] < sizes[best] {
				best = c
			}
		}
		w := ask(t, p, "GET", path, "Accept-Encoding", "zstd, br, gzip")
		if got := w.Header().Get("Content-Encoding"); got != best || w.Body.Len() != sizes[best] {
			t.Errorf("%s: %s with %d bytes, of %v", path, got, w.Body.Len(), sizes)
		}
		tag := w.Header().Get("ETag")
		if again := ask(t, p, "GET", path, "Accept-Encoding", "zstd, br, gzip", "If-None-Match", tag); again.Code != 304 || again.Header().Get("ETag") != tag {
			t.Errorf("%s: %d with %s, want a 304 with %s", path, again.Code, again.Header().Get("ETag"), tag)
		}
		t.Logf("%s: %v, %s", path, sizes, best)
	}
}
