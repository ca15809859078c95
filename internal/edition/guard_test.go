package edition

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// Without a key, a guarded protocol returns no document, cached or not, large or small.
func TestGuardedWithoutKey(t *testing.T) {
	proto := &memProtocol{vary: "Accept"}
	s := NewServer(newMemSite(4).source(), []Protocol{{Name: "mem", Publisher: proto, Guarded: true}}, newArtifacts(), &Options{Logger: slog.New(slog.DiscardHandler)})
	publish(t, s)
	proto.renders.Store(0)
	g, key := keyed(t)
	for _, target := range []string{"/even.txt", "/1.txt", "/1.txt?x"} {
		for _, q := range []*access.Request{nil, asking(t, g, key), nil} {
			w := httptest.NewRecorder()
			_, err := s.Answer(w, httptest.NewRequest(http.MethodGet, target, nil), q)
			switch {
			case q == nil && (millrace.Status(err) != http.StatusUnauthorized || len(w.Header()) > 0 || w.Body.Len() > 0):
				t.Errorf("%s: %v, %v", target, err, w.Header())
			case q != nil && (err != nil || w.Code != http.StatusOK):
				t.Errorf("%s with a key: %d %v", target, w.Code, err)
			}
		}
	}
}

// asking returns a request with a key, or without one if the key is empty.
func asking(t *testing.T, g *access.Guard, key string) *access.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	q := g.Request(r)
	return &q
}

// keyed returns a guard and a key with the scope to read.
func keyed(t *testing.T) (*access.Guard, string) {
	t.Helper()
	keys := memory.New(nil).Keys()
	key, hash := store.NewKey()
	if err := keys.Add(t.Context(), store.Key{Name: "read", Hash: hash, Scopes: []millrace.Scope{millrace.ScopeRead}}); err != nil {
		t.Fatal(err)
	}
	g, err := access.New(&access.Options{Keys: keys, MaxWork: 1000}) // the requests of the tests do not end
	if err != nil {
		t.Fatal(err)
	}
	return g, key
}

func TestPrivate(t *testing.T) {
	for in, want := range map[string]string{
		"": "private", "public": "private", "max-age=0, must-revalidate": "private, max-age=0, must-revalidate",
		"PUBLIC , S-MaxAge = 9,max-age=3,proxy-revalidate": "private, max-age=3", "private=\"x\", no-store": "private, no-store",
	} {
		if got := Private([]string{in}); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"": "Authorization", "*": "*", "Accept": "Accept, Authorization", "accept, authorization": "accept, authorization"} {
		if got := varied([]string{in}); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
