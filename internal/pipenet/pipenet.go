// Package pipenet is an in-memory network: connections between a client and a server in one
// process, which work with fake time ([testing/synctest]).
package pipenet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Listener is a [net.Listener] that accepts only connections of its own Dial.
type Listener struct {
	// Wrap wraps the server's end of each connection before Accept returns it. If nil, connections
	// are unchanged. Set it before the first Dial.
	Wrap func(net.Conn) net.Conn

	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Serve returns a listener from which s accepts connections until s is closed.
func Serve(s *http.Server) *Listener {
	l := Listen()
	go func() { _ = s.Serve(l) }() // returns ErrServerClosed
	return l
}

// Dial connects to the listener, for any address, and waits for Accept. The address is the
// LocalAddr of the server's end. Dial is the DialContext of an [http.Transport].
func (l *Listener) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	ours, pipe := net.Pipe()
	var theirs net.Conn = conn{pipe, addr(address)}
	if l.Wrap != nil {
		theirs = l.Wrap(theirs)
	}
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, fmt.Errorf("connect to %s in this process: %w", address, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// conn is the server's end of a connection.
type conn struct {
	net.Conn
	local addr
}

// LocalAddr implements [net.Conn].
func (c conn) LocalAddr() net.Addr { return c.local }

// addr is an address as text.
type addr string

// Network implements [net.Addr].
func (addr) Network() string { return "memory" }

// String implements [net.Addr].
func (a addr) String() string { return string(a) }

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close rejects further connections.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a constant address.
func (l *Listener) Addr() net.Addr { return addr("memory") }
