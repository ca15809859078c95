package conns

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/pipenet"
)

// at is the server's end of a connection from an address.
type at struct {
	net.Conn
	from netip.Addr
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
	from string // the address of the next connection
}

const aProxy = "2001:db8:1::1"

// newTable starts a server with a number of connections. A response to /slow never comes.
func newTable(t *testing.T, most int) *table {
	s := &table{t: t, ln: pipenet.Listen()}
	s.ln.Wrap = func(c net.Conn) net.Conn { return at{c, netip.MustParseAddr(s.from)} }
	s.l = Limit(s.ln, most, Busy, func(a netip.Addr) bool { return a == netip.MustParseAddr(aProxy) }).(*limited)
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
		time.Sleep(time.Millisecond) // connections have an order
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

// In a full table, a new connection replaces the oldest connection without a complete header,
// of the address with the most of them.
func TestFullTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 20)
		few := s.dials(2, "192.0.2.1", half)
		many := s.dials(10, "2001:db8::1", half)
		many = append(many, s.dials(1, "2001:db8::2", half)...) // the same network
		busy := s.dials(7, "192.0.2.2", slow)
		if n := open(few, many, busy); !slices.Equal(n, []int{2, 11, 7}) {
			t.Fatalf("open at first: %v", n)
		}
		one := s.dials(1, "192.0.2.3", whole)
		if n := open(few, many, busy); !slices.Equal(n, []int{2, 10, 7}) || !many[0].closed || one[0].status != http.StatusOK {
			t.Errorf("open after a new client: %v, its response %d", n, one[0].status)
		}
		// A flood replaces its own connections.
		flood := s.dials(100, "192.0.2.4", half)
		if n := open(few, one, busy); !slices.Equal(n, []int{2, 1, 7}) {
			t.Errorf("open after a flood: %v", n)
		}
		if a, b := open(many)[0], open(flood)[0]; a+b != 10 || b < 5 || flood[99].closed {
			t.Errorf("%d connections of two networks, then %d of the flood", a, b)
		}
	})
}

// If all headers are complete, the largest holder loses its oldest connection, but not to an
// address with as many. A proxy loses none.
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
			t.Errorf("the third connection gets %d", next[2].status)
		}
		idle := s.dials(1, "192.0.2.4", whole)
		if n := open(proxied, busy, other, next[:2], idle); !slices.Equal(n, []int{5, 1, 1, 2, 1}) {
			t.Errorf("open: %v", n)
		}
		// After its response, a connection waits again, and goes first.
		_ = s.dials(1, "192.0.2.5", whole)
		if !idle[0].closed {
			t.Errorf("an idle connection stays: %v", open(proxied, busy, other, next))
		}
	})
}

// Ten thousand connections from fifty addresses send no complete header, and are opened again when they
// are closed. A new client gets its response in a moment.
func TestHalfOpenFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTable(t, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
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
		for range 10 {
			time.Sleep(13 * time.Millisecond)
			began := time.Now()
			c := s.dial("192.0.2.1")
			time.Sleep(30 * time.Millisecond) // a client far away
			_, _ = io.WriteString(c, whole)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if took := time.Since(began); err != nil || res.StatusCode != http.StatusOK || took > 100*time.Millisecond {
				t.Fatalf("after %v: %v %v", took, res, err)
			}
			_ = c.Close()
		}
		cancel()
		flood.Wait()
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
