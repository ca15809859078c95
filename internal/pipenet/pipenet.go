// Package pipenet is a network within the process: connections in memory between
// a client and a server, which work with fake time ([testing/synctest]).
package pipenet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Listener is a [net.Listener] that is reached by its own Dial alone.
type Listener struct {
	// Wrap is given the server's end of each connection, and gives what is
	// accepted; nil = that end itself. Set it before the first Dial.
	Wrap func(net.Conn) net.Conn

	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen gives a listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Serve gives a listener of which s accepts, until s is closed.
func Serve(s *http.Server) *Listener {
	l := Listen()
	go func() { _ = s.Serve(l) }() // it says that it was closed
	return l
}

// Dial connects with the listener, whatever the address is, once it accepts. It
// is the DialContext of an [http.Transport].
func (l *Listener) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	if l.Wrap != nil {
		theirs = l.Wrap(theirs)
	}
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, fmt.Errorf("connect with %s in this process: %w", address, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses what comes from now on.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr gives an address that says nothing.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }
