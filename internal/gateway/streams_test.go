package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/edition"
)

// One client takes at most half of the places, and leaves the others to those
// that have few.
func TestStreams(t *testing.T) {
	s := newStreams(100, nil)
	greedy := client{from: netip.MustParseAddr("192.0.2.1")}
	var ends []func()
	for range 50 {
		end, err := s.enter(greedy)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, err := s.enter(greedy); !errors.Is(err, errStreams) {
		t.Errorf("more than half: %v", err)
	}
	for key := range 9 {
		who := client{key: string(rune('a' + key))}
		for n := range 7 {
			end, err := s.enter(who)
			switch {
			case err == nil:
				ends = append(ends, end)
			case s.open == 100 && errors.Is(err, errBusy):
			case n < s.few() || !errors.Is(err, errStreams):
				t.Errorf("%v's stream %d: %v", who, n, err)
			}
		}
	}
	if s.open != 100 {
		t.Errorf("%d streams of 100", s.open)
	}
	for _, end := range ends {
		end()
	}
	if s.open != 0 || len(s.each) != 0 {
		t.Errorf("%d open, of %v", s.open, s.each)
	}
}

// stuck is a client that reads nothing of what is answered with 200.
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

// One client that reads nothing does not keep the others out.
func TestStuckClients(t *testing.T) {
	g := setup{files: site(), rooms: []edition.Room{{Name: "notes", Publisher: new(notes)}}, o: Options{Access: accessOptions{MaxRequests: 40}}}.gateway(t)
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
		t.Errorf("of 40 places one client has %v", got)
	}
	for _, target := range []string{"/a/", "/notes", "/notes?q=All"} {
		w := httptest.NewRecorder()
		if get("192.0.2.2", target, w); w.Code != http.StatusOK {
			t.Errorf("somebody else gets %d for %s", w.Code, target)
		}
	}
	close(end)
	all.Wait()
	if n := g.guard.active.Load(); n != 0 || g.guard.crowd.open != 0 {
		t.Errorf("%d places are taken, %d of the last ones", n, g.guard.crowd.open)
	}
}

// The collector is eager as long as many listen.
func TestCollect(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	percent := func() int {
		n := debug.SetGCPercent(400)
		debug.SetGCPercent(n)
		return n
	}
	s := newStreams(0, Collect(400))
	var ends []func()
	for n := range 300 {
		end, err := s.enter(client{})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
		if n == 254 && percent() != 400 {
			t.Errorf("%d with few", percent())
		}
	}
	if percent() != 100 {
		t.Errorf("%d with many", percent())
	}
	for n, end := range ends {
		if end(); n == 150 && percent() != 100 {
			t.Errorf("%d with fewer", percent())
		}
	}
	if percent() != 400 {
		t.Errorf("%d with none", percent())
	}
}
