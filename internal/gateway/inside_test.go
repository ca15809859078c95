package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace/internal/access"
)

// The owner's own requests are authorized and not counted. Other clients cannot use their key.
func TestInside(t *testing.T) {
	g, _, _ := closed(t, newRing(t), Options{Access: access.Options{Rate: 1}}, nil)
	inside, key := g.OwnHandler()
	ask := func(h http.Handler, key string) int {
		r := httptest.NewRequest(http.MethodGet, "/llm-pages.json", nil)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for range 20 {
		if got := ask(inside, key); got != http.StatusOK {
			t.Fatalf("a request of the owner: %d", got)
		}
	}
	if got := ask(inside, ""); got != http.StatusUnauthorized {
		t.Errorf("without the key: %d", got)
	}
	if got := ask(g, key); got != http.StatusUnauthorized {
		t.Errorf("another client with the owner's key: %d", got)
	}
	open := setup{o: Options{Access: access.Options{Rate: 1}}}.gateway(t)
	if _, key := open.OwnHandler(); key != "" {
		t.Error("a key is created for a site without keys")
	}
}
