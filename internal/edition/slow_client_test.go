package edition

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
)

// slowWriter blocks until the test releases it.
type slowWriter struct {
	*httptest.ResponseRecorder
	arrived *sync.WaitGroup
	release chan struct{}
}

func (w slowWriter) Write(b []byte) (int, error) {
	w.arrived.Done()
	<-w.release
	return w.ResponseRecorder.Write(b)
}

// Slow clients of a document that is too large for the cache share one copy.
func TestLargeBodiesAreShared(t *testing.T) {
	proto := &memProtocol{pad: 1 << 20}
	s := newTestServer(t, newMemSite(3), proto, &Options{CacheBytes: 64 << 10})
	publish(t, s)
	proto.renders.Store(0)
	const clients = 20
	var arrived, done sync.WaitGroup
	arrived.Add(clients)
	release := make(chan struct{})
	for range clients {
		done.Go(func() {
			w := slowWriter{httptest.NewRecorder(), &arrived, release}
			if ok, err := s.Serve(w, httptest.NewRequest(http.MethodGet, "/1.txt", nil)); !ok || err != nil || w.Body.Len() < 1<<20 {
				t.Errorf("%v %v, %d bytes", ok, err, w.Body.Len())
			}
		})
		runtime.GC()
	}
	arrived.Wait()
	if n := proto.renders.Load(); n != 1 {
		t.Errorf("%d copies for %d clients", n, clients)
	}
	close(release)
	done.Wait()
}
