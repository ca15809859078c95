package gateway

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/internal/access"
)

// While a request is processed, other requests get cached documents. Requests for other documents
// wait.
func TestWork(t *testing.T) {
	g := slowly(t, Options{Access: access.Options{MaxWork: 1}})
	if w := ask(g, "GET", "/p1/llm.json"); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	synctest.Test(t, func(t *testing.T) {
		works := g.guard.Request(httptest.NewRequest(http.MethodGet, "/", nil))
		if err := works.WaitTurn(); err != nil {
			t.Fatal(err)
		}
		if w := ask(g, "GET", "/p1/llm.json"); w.Code != http.StatusOK {
			t.Errorf("a cached document: %d", w.Code)
		}
		var others sync.WaitGroup
		var answered sync.Map
		for _, target := range []string{"/p2/llm.json", "/none/llm.json", "/llm-pages.json"} {
			others.Go(func() { answered.Store(target, ask(g, "GET", target).Code) })
		}
		synctest.Wait()
		answered.Range(func(target, code any) bool { t.Errorf("%s did not wait: %d", target, code); return true })
		works.Leave()
		others.Wait()
		if code, _ := answered.Load("/none/llm.json"); code != http.StatusNotFound {
			t.Errorf("a document that does not exist: %v", code)
		}
		if q := g.guard.Request(httptest.NewRequest(http.MethodGet, "/", nil)); q.WaitTurn() != nil {
			t.Error("a turn was lost")
		} else {
			q.Leave()
		}
	})
}

// halted is a client that reads nothing until the test releases it.
type halted struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (s halted) Write(b []byte) (int, error) {
	<-s.release
	return s.ResponseRecorder.Write(b)
}

// A client that does not read its response, or does not send the body of a login, delays no
// other.
func TestWorkOfSlowClients(t *testing.T) {
	dashboard := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseForm() })
	g := slowly(t, Options{Access: access.Options{MaxWork: 1}, Dashboard: dashboard, DashboardPath: "/board"})
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var slow sync.WaitGroup
		for _, target := range []string{"/llm-pages.json", "/p3/llm.json", "/none/llm.json"} {
			slow.Go(func() {
				g.ServeHTTP(halted{httptest.NewRecorder(), release}, httptest.NewRequest(http.MethodGet, target, nil))
			})
		}
		slow.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/board/login", http.NoBody)
			r.Body = unsent{release}
			r.ContentLength = 10
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			g.ServeHTTP(httptest.NewRecorder(), r)
		})
		synctest.Wait()
		for _, target := range []string{"/p4/llm.json", "/llm-pages.json"} {
			if w := ask(g, "GET", target); w.Code != http.StatusOK {
				t.Errorf("%s: %d", target, w.Code)
			}
		}
		close(release)
		slow.Wait()
	})
}

// unsent is a body that ends when the test releases it.
type unsent struct{ release chan struct{} }

func (u unsent) Read([]byte) (int, error) {
	<-u.release
	return 0, http.ErrBodyReadAfterClose
}

func (u unsent) Close() error { return nil }
