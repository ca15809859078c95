package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/pipenet"
)

// network connects clients and replicas through slow or breaking connections and the load
// balancer.
type network struct {
	w      *world
	front  *pipenet.Listener
	server *http.Server
	served chan struct{}
	cuts   atomic.Int64
	rng    *rand.Rand
}

func newNetwork(w *world) *network {
	n := &network{w: w, front: pipenet.Listen(), served: make(chan struct{}), rng: w.rand("network")}
	n.front.Wrap = n.wire
	n.server = &http.Server{Handler: &balancer{n}}
	go func() {
		defer close(n.served)
		_ = n.server.Serve(n.front)
	}()
	return n
}

func (n *network) close() {
	_ = n.server.Close()
	<-n.served
}

// dial connects a client to the site.
func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr != host+":80" {
		return nil, fmt.Errorf("no such host: %s", addr)
	}
	return n.front.Dial(ctx, network, addr)
}

// wire makes one end of a connection unreliable.
func (n *network) wire(c net.Conn) net.Conn {
	f := &unreliableConn{Conn: c, n: n, left: -1}
	if n.w.chance(n.rng, .25) {
		f.left = 1 + n.rng.IntN(8<<10)
	}
	return f
}

// unreliableConn is a connection that is sometimes slow, and may break after a number of written
// bytes.
type unreliableConn struct {
	net.Conn
	n    *network
	left int // bytes until it breaks; negative = never
}

// Write writes bytes until the connection breaks.
func (f *unreliableConn) Write(b []byte) (int, error) {
	if f.n.w.chance(f.n.rng, .15) {
		time.Sleep(between(f.n.rng, time.Millisecond, 400*time.Millisecond))
	}
	if f.left < 0 || f.n.w.settling.Load() {
		return f.Conn.Write(b)
	}
	if len(b) < f.left {
		f.left -= len(b)
		return f.Conn.Write(b)
	}
	n, _ := f.Conn.Write(b[:f.left])
	f.left = 0
	f.n.cuts.Add(1)
	_ = f.Close()
	return n, fmt.Errorf("write: %w", syscall.ECONNRESET)
}
