package fetch

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A key is sent only to its own origin, even after redirects.
func TestWithKeys(t *testing.T) {
	var seen []string
	note := func(name string, h http.HandlerFunc) *httptest.Server {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, name+r.URL.Path+" "+r.Header.Get("Authorization"))
			h(w, r)
		}))
		t.Cleanup(srv.Close)
		return srv
	}
	var home *httptest.Server
	other := note("other", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			http.Redirect(w, r, home.URL+"/end", http.StatusFound)
		}
	})
	home = note("home", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/near":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/away":
			http.Redirect(w, r, other.URL+"/end", http.StatusFound)
		case "/around":
			http.Redirect(w, r, other.URL+"/back", http.StatusFound)
		}
	})
	key := func(origin string) string {
		if origin == home.URL {
			return "k"
		}
		return ""
	}
	clients := map[string]*http.Client{
		"guarded":  New(&Options{AllowPrivate: true, IgnoreRobots: true}).HTTP(),
		"standard": {},
	}
	for name, client := range clients {
		client := WithKeys(client, key)
		for path, want := range map[string]string{
			"/plain":  "home/plain Bearer k",
			"/near":   "home/near Bearer k, home/end Bearer k",
			"/away":   "home/away Bearer k, other/end ",
			"/around": "home/around Bearer k, other/back , home/end ",
		} {
			seen = nil
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, home.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := Do(t.Context(), client, req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got := strings.Join(seen, ", "); got != want {
				t.Errorf("%s, %s: %s, want %s", name, path, got, want)
			}
			if resp.Request.Header.Get("Authorization") != "" {
				t.Errorf("%s, %s: the response has the key", name, path)
			}
		}
	}
}

// The scheme and the port are part of an origin: a key of https is never sent
// over http.
func TestKeyOrigins(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"https://Example.com/a?b", "https://example.com"},
		{"https://example.com:443/", "https://example.com"},
		{"http://example.com:80/", "http://example.com"},
		{"http://example.com:443/", "http://example.com:443"},
		{"https://example.com:8443/", "https://example.com:8443"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.url, nil)
		if got := asciiOrigin(r.URL); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.url, got, tt.want)
		}
	}
	if c := new(http.Client); WithKeys(c, nil) != c {
		t.Error("without keys, the client is not returned unchanged")
	}
}
