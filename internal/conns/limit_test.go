package conns

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/pipenet"
)

// at is the server's end of a connection from an address that has already sent some bytes.
type at struct {
	net.Conn
	from netip.Addr
	sent *strings.Reader
}

func (c at) Read(b []byte) (int, error) {
	if c.sent.Len() > 0 {
		return c.sent.Read(b)
	}
	return c.Conn.Read(b)
}

func (c at) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.from, 4711))
}

// table is a server with a limit.
type table struct {
	t  *testing.T
	l  *limited
	ln *pipenet.Listener

	mu   sync.Mutex
	from string // address of the next connection
	sent string // bytes that the next connection has sent

	noFiles atomic.Bool // whether the next connection cannot be accepted
}

// accepting is a listener that may fail to accept a connection.
type accepting struct {
	net.Listener
	noFiles *atomic.Bool
}

func (a accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err == nil && a.noFiles.Swap(false) {
		_ = c.Close()
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}
	}
	return c, err
}

const aProxy = "2001:db8:1::1"

// newTable starts a server with a number of connections. A response to /slow never comes.
func newTable(t *testing.T, most int) *table {
	s := &table{t: t, ln: pipenet.Listen()}
	s.ln.Wrap = func(c net.Conn) net.Conn { return at{c, netip.MustParseAddr(s.from), strings.NewReader(s.sent)} }
	proxy := func(a netip.Addr) bool { return a == netip.MustParseAddr(aProxy) }
	s.l = Limit(accepting{s.ln, &s.noFiles}, most, Busy, proxy, slog.New(slog.DiscardHandler)).(*limited)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, ConnState: State, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "here")
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.l) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return s
}

// dial connects from an address.
func (s *table) dial(from string) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = from
	c, err := s.ln.Dial(s.t.Context(), "tcp", "x:80")
	if err != nil {
		s.t.Error(err)
		return nil
	}
	return c
}

// dials opens n connections from an address, which send text.
func (s *table) dials(n int, from, text string) (all []*client) {
	for range n {
		c := &client{Conn: s.dial(from)}
		all = append(all, c)
		s.t.Cleanup(func() { _ = c.Close() })
		go c.read()
		_, _ = io.WriteString(c, text)
		time.Sleep(time.Millisecond) // wait, so that the connections are accepted in order
	}
	synctest.Wait()
	return all
}

// client is a client's end of a connection.
type client struct {
	net.Conn
	status int // of the last response
	closed bool
}

func (c *client) read() {
	for in := bufio.NewReader(c); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			c.closed = true
			return
		}
		c.status = res.StatusCode
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			c.closed = true
			return
		}
	}
}

// Requests of the tests.
const (
	half  = "GET / HTTP/1.1\r\nHost: x\r\nX-A: "
	whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	slow  = "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
)

func open(all ...[]*client) (n []int) {
	for _, of := range all {
		n = append(n, 0)
		for _, c := range of {
			if !c.closed {
				n[len(n)-1]++
			}
		}
	}
	return n
}

// While many connections wait for their first request, each address gets only a few. If an address
// has more, its oldest connection is closed when another address connects.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 320)
		busy := s.dials(7, "192.0.2.2", slow)
		many := append(s.dials(19, "2001:db8::1", half), s.dials(1, "2001:db8::2", half)...) // the same network
		if n := open(many, busy); !slices.Equal(n, []int{20, 7}) {
			t.Fatalf("open at first: %v", n)
		}
		other := s.dials(1, "192.0.2.3", whole)
		if n := open(many, busy); !slices.Equal(n, []int{19, 7}) || !many[0].closed || other[0].status != http.StatusOK {
			t.Errorf("open after a new client: %v, its response %d", n, other[0].status)
		}
		flood := s.dials(100, "192.0.2.4", half)
		if n := open(many, flood, other, busy); !slices.Equal(n, []int{16, 4, 1, 7}) || flood[0].closed {
			t.Errorf("open after a flood: %v", n)
		}
		for i := range 80 {
			if c := s.dials(1, fmt.Sprintf("198.51.100.%d", i), half); c[0].closed {
				t.Errorf("connection %d is refused", i)
			}
		}
		if n := open(many, flood, other, busy); !slices.Equal(n, []int{4, 4, 1, 7}) {
			t.Errorf("open after many addresses: %v", n)
		}
		if proxied := s.dials(50, aProxy, half); open(proxied)[0] != 50 {
			t.Errorf("%d connections of a proxy are open", open(proxied)[0])
		}
	})
}

// In a full table, a new connection replaces the oldest one without a complete header, of the
// address with the most of them.
func TestFullTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 10)
		busy := s.dials(3, "192.0.2.1", slow)
		few := s.dials(2, "192.0.2.2", whole)
		many := s.dials(5, "192.0.2.3", whole)
		other := s.dials(4, "192.0.2.4", whole)
		if n := open(busy, few, many, other); !slices.Equal(n, []int{3, 2, 2, 3}) || other[3].closed {
			t.Errorf("open: %v", n)
		}
	})
}

// If the process cannot open more files, connections are closed although the table is not full.
func TestTooManyFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 320)
		busy := s.dials(1, "192.0.2.1", slow)
		many := s.dials(15, "192.0.2.2", half)
		s.noFiles.Store(true)
		if refused := s.dials(1, "192.0.2.3", whole); !refused[0].closed {
			t.Error("the connection was accepted")
		}
		time.Sleep(time.Second) // the server waits
		other := s.dials(1, "192.0.2.3", whole)
		if n := open(busy, many, other); !slices.Equal(n, []int{1, 12, 1}) || other[0].status != http.StatusOK {
			t.Errorf("open: %v", n)
		}
	})
}

// Connections whose requests have arrived are not replaced, however many new connections arrive at
// once.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 320)
		s.sent = whole
		clients := make([]client, 300)
		for i := range clients {
			clients[i].Conn = s.dial("192.0.2.1")
			defer func() { _ = clients[i].Close() }()
			go clients[i].read()
		}
		synctest.Wait()
		for i := range clients {
			if clients[i].status != http.StatusOK {
				t.Errorf("connection %d: status %d", i, clients[i].status)
			}
		}
	})
}

// If all headers are complete, the oldest connection of the address with the most connections is
// closed, unless the new connection comes from an address with as many. Connections of proxies are
// not closed.
func TestFullOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 10)
		proxied := s.dials(5, aProxy, slow)
		busy := s.dials(4, "192.0.2.1", slow)
		other := s.dials(1, "192.0.2.2", slow)
		next := s.dials(3, "192.0.2.3", slow)
		if n := open(proxied, busy, other, next[:2]); !slices.Equal(n, []int{5, 2, 1, 2}) || !busy[0].closed || !busy[1].closed {
			t.Errorf("open: %v", n)
		}
		if next[2].status != http.StatusServiceUnavailable {
			t.Errorf("the third connection gets status %d", next[2].status)
		}
		idle := s.dials(1, "192.0.2.4", whole)
		if n := open(proxied, busy, other, next[:2], idle); !slices.Equal(n, []int{5, 1, 1, 2, 1}) {
			t.Errorf("open: %v", n)
		}
		// After its response, a connection waits for a request again, and is closed first.
		_ = s.dials(1, "192.0.2.5", whole)
		if !idle[0].closed {
			t.Errorf("an idle connection was not closed: %v", open(proxied, busy, other, next))
		}
	})
}

// Ten thousand connections from fifty addresses send no complete header, and are opened again when they
// are closed. A new client gets its response quickly.
func TestHalfOpenFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 4096)
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		defer flood.Wait()
		defer cancel()
		for i := range 10_000 {
			flood.Go(func() {
				for ctx.Err() == nil {
					c := s.dial(fmt.Sprintf("198.51.100.%d", i%50))
					if c == nil {
						return
					}
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					_, _ = io.WriteString(c, half)
					_, _ = io.Copy(io.Discard, c)
					_ = c.Close()
					stop()
					time.Sleep(250 * time.Millisecond)
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
		for range 10 {
			time.Sleep(13 * time.Millisecond)
			began := time.Now()
			c := s.dial("192.0.2.1")
			time.Sleep(30 * time.Millisecond) // the latency of a distant client
			_, _ = io.WriteString(c, whole)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if took := time.Since(began); err != nil || res.StatusCode != http.StatusOK || took > 100*time.Millisecond {
				t.Errorf("after %v: %v %v", took, res, err)
			}
			_ = c.Close()
		}
	})
}

// Closed connections release their slots.
func TestSlotsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 4)
		for i, text := range []string{half, slow, whole, half, half, slow, slow} {
			c := s.dials(1, fmt.Sprintf("192.0.2.%d", i%3), text)
			defer func() { _ = c[0].Close() }()
		}
		if s.l.open != 4 || len(s.l.each) != 3 {
			t.Errorf("%d connections of %d addresses", s.l.open, len(s.l.each))
		}
		t.Cleanup(func() {
			synctest.Wait()
			if s.l.open != 0 || len(s.l.each) != 0 {
				t.Errorf("%d slots of %d addresses are not released", s.l.open, len(s.l.each))
			}
		})
	})
}
