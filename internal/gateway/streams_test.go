package gateway

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
)

// stuck is a client that never reads the body of a 200.
type stuck struct {
	*httptest.ResponseRecorder
	status chan<- int
	end    <-chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	s.status <- s.Code
	if s.Code == http.StatusOK {
		<-s.end
	}
	return len(b), nil
}

// A client that reads nothing does not block others.
func TestStuckClients(t *testing.T) {
	g := setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}, o: Options{Access: access.Options{MaxRequests: 40}}}.gateway(t)
	get := func(from, target string, w http.ResponseWriter) {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.RemoteAddr = from + ":1"
		g.ServeHTTP(w, r)
	}
	status, end := make(chan int), make(chan struct{})
	var all sync.WaitGroup
	got := make(map[int]int)
	for range 100 {
		all.Go(func() { get("192.0.2.1", "/a/llm.json", stuck{httptest.NewRecorder(), status, end}) })
		got[<-status]++
	}
	if got[http.StatusOK] != 30 || got[http.StatusTooManyRequests] != 70 {
		t.Errorf("one client has these of the 40 slots: %v", got)
	}
	for _, target := range []string{"/a/", "/notes", "/notes?q=All"} {
		w := httptest.NewRecorder()
		if get("192.0.2.2", target, w); w.Code != http.StatusOK {
			t.Errorf("another client gets %d for %s", w.Code, target)
		}
	}
	close(end)
	all.Wait()
	if n := g.guard.Active(); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}
