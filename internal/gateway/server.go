package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/conns"
)

// ServerOptions configure a [Server]. The zero value works.
type ServerOptions struct {
	// TLS holds the certificate. If nil, the server uses HTTP without TLS.
	TLS *conns.Certificates
	// Logger receives failures. If nil, they are discarded.
	Logger *slog.Logger

	MaxConnections int           // maximum number of concurrent connections; new ones replace others, see [conns.Limit]. If zero, 4096.
	ReadTimeout    time.Duration // time limit for the header of a request; twice that for the whole request. If zero, 10 s.
	WriteTimeout   time.Duration // time limit for a response; large documents have more time. If zero, 60 s.
	StopTimeout    time.Duration // time limit for pending requests during shutdown. If zero, 1.5 s.
}

// Limits of HTTP/2. If maxConcurrent is set, net/http closes connections that flood the server with
// reset streams or control frames.
const (
	maxConcurrent = 128              // maximum number of streams of one connection
	pingAfter     = 30 * time.Second // silence before a ping
	pingTimeout   = 15 * time.Second // time limit for the response to a ping
	stallTimeout  = 30 * time.Second // time limit of a pending write without progress
)

// Server listens and passes requests to a [Gateway]. The gateway can be replaced without refusing
// connections or interrupting requests.
type Server struct {
	o   ServerOptions
	log *slog.Logger
	now atomic.Pointer[post]
}

// post holds a gateway that is or was in use, and counts its pending requests.
type post struct {
	g      *Gateway
	open   atomic.Int64 // pending requests
	left   atomic.Bool  // another gateway has replaced g
	empty  chan struct{}
	closed atomic.Bool // empty is closed
}

// NewServer returns a server with the gateway g.
func NewServer(g *Gateway, o *ServerOptions) *Server {
	if o == nil {
		o = new(ServerOptions)
	}
	s := &Server{o: *o, log: o.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.now.Store(newPost(g))
	return s
}

func newPost(g *Gateway) *post { return &post{g: g, empty: make(chan struct{})} }

// Use makes g handle new requests. Pending requests finish in the previous gateway. The streams of
// that gateway end, and their clients reconnect to g. Use returns a channel that is closed when the
// last request of the previous gateway has ended.
func (s *Server) Use(g *Gateway) (empty <-chan struct{}) {
	was := s.now.Swap(newPost(g))
	was.left.Store(true)
	was.check()
	was.g.EndStreams()
	return was.empty
}

// ServeHTTP passes a request to the current gateway.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := s.enter()
	defer p.leave()
	p.g.ServeHTTP(w, r)
}

// enter returns the current gateway and counts the request, until leave.
func (s *Server) enter() *post {
	for {
		p := s.now.Load()
		p.open.Add(1)
		if !p.left.Load() {
			return p
		}
		p.leave()
	}
}

func (p *post) leave() {
	p.open.Add(-1)
	if p.left.Load() {
		p.check()
	}
}

// check closes empty when the last request of a replaced gateway has ended.
func (p *post) check() {
	if p.open.Load() == 0 && p.closed.CompareAndSwap(false, true) {
		close(p.empty)
	}
}

// Listen opens a TCP listener. The error explains that an address is in use, or that a port needs a
// privilege.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, millrace.Coded("address-in-use", fmt.Errorf("listen %s: %w by another program; stop it, or use another port", address, syscall.EADDRINUSE))
	case errors.Is(err, syscall.EACCES):
		return nil, millrace.Coded("port-privilege", fmt.Errorf("listen %s: %w; ports below 1024 need a privilege", address, syscall.EACCES))
	case err != nil:
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	return ln, nil
}

// Run serves until the context ends, then waits for pending requests. It closes ln.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	read := cmp.Or(s.o.ReadTimeout, 10*time.Second)
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: read,
		ReadTimeout:       2 * read,
		WriteTimeout:      cmp.Or(s.o.WriteTimeout, time.Minute),
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    conns.MaxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext:       conns.Context,
		ConnState:         conns.State,
		Protocols:         new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	most := cmp.Or(s.o.MaxConnections, 4096)
	proxy := func(a netip.Addr) bool { return s.now.Load().g.guard.Trusted(a) }
	listen := func() error { return server.Serve(conns.Limit(ln, most, conns.Busy, proxy, s.log)) }
	if s.o.TLS != nil {
		server.Protocols.SetHTTP2(true)
		server.HTTP2 = &http.HTTP2Config{
			MaxConcurrentStreams: maxConcurrent,
			SendPingTimeout:      pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: stallTimeout,
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.o.TLS.Get}
		listen = func() error { return server.ServeTLS(conns.Limit(ln, most, "", proxy, s.log), "", "") }
	}
	failed := make(chan error, 1)
	go func() { failed <- listen() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	s.now.Load().g.EndStreams()
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.o.StopTimeout, 1500*time.Millisecond))
	defer done()
	if err := server.Shutdown(stop); err != nil {
		s.log.Warn("pending requests interrupted by shutdown", "err", err)
		return server.Close()
	}
	return nil
}
