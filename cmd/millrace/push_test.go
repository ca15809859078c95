package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Search engines are told of the page that changes, and find the file of the key.
func TestPushIndexNow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(body))
	}))
	defer engine.Close()
	dir := copySite(t, "handbook")
	s := serve(t, dir, "--indexnow", "--indexnow-url", engine.URL, "--indexnow-key", "0123456789abcdef", "--allow-private")
	if code, header, body := get(t, s.url+"0123456789abcdef.txt"); code != http.StatusOK || body != "0123456789abcdef" || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Errorf("the file of the key: %d %q", code, body)
	}
	eventually(t, "what is there is no news", func() bool { return strings.Contains(s.out.String(), "search engines are told") })
	edit(t, dir, "Alderford is a mill", "Alderford was a mill")
	eventually(t, "the edit is submitted", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) > 0 })
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(got[0], `"urlList":["`+s.url+`about/"]`) {
		t.Errorf("submitted: %s", got)
	}
}
