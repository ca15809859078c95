package conns

import (
	"cmp"
	"container/list"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/access"
)

// Limit returns a listener with at most most connections. In a full table, a new connection
// replaces another one, see [limited.victim]. If it cannot, it gets words, if any, and is
// closed. The server needs [State].
func Limit(ln net.Listener, most int, words string, proxy func(netip.Addr) bool) net.Listener {
	return &limited{Listener: ln, most: most, words: words, proxy: proxy, each: make(map[netip.Addr]*holder)}
}

type limited struct {
	net.Listener
	most    int
	words   string // an HTTP response; "" if the client would not understand it
	proxy   func(netip.Addr) bool
	refused atomic.Int64
	spare   sync.Pool // of *[bufferSize]byte

	mu    sync.Mutex
	open  int
	moves uint64                 // orders connections by their last move to a list
	each  map[netip.Addr]*holder // by address, for IPv6 by network; all proxies are the zero address
}

// holder is an address with its connections, the oldest first: those without a complete header,
// which are new or between two requests, and those with a request.
type holder struct{ waiting, active list.List }

// State follows the requests of a connection, as [http.Server.ConnState].
func State(c net.Conn, state http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if c, ok := c.(*conn); ok && (state == http.StateActive || state == http.StateIdle) {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		if h := c.holder; h != nil && state == http.StateActive {
			c.move(&h.active)
		} else if h != nil {
			c.move(&h.waiting)
		}
	}
}

// move puts the connection at the end of a list, or in none. The lock is held.
func (c *conn) move(to *list.List) {
	if c.in != nil {
		c.in.Remove(c.place)
	}
	if c.in = to; to != nil {
		c.l.moves++
		c.moved, c.place = c.l.moves, to.PushBack(c)
	}
}

// enter takes a slot for a connection, if available.
func (l *limited) enter(c *conn) bool {
	if a := access.Network(peer(c.Conn)); a.IsValid() && !l.proxy(peer(c.Conn)) {
		c.from = a
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		out := l.victim(c.from)
		if out == nil {
			return false
		}
		l.leave(out)
		_ = out.Conn.Close() // its requests end with errors of their own
	}
	h := l.each[c.from]
	if h == nil {
		h = new(holder)
		l.each[c.from] = h
	}
	l.open++
	c.holder = h
	c.move(&h.waiting)
	return true
}

// victim returns the connection that a new one of an address replaces: the oldest connection
// without a complete header of the address with the most of them. If every header is complete,
// it is the oldest connection of the address with the most, if that has two more than the new
// one's: no address loses its last request, and proxies lose none. nil = none. The lock is held.
func (l *limited) victim(from netip.Addr) *conn {
	active := candidate{most: 1}
	if h := l.each[from]; h != nil {
		active.most += h.active.Len()
	}
	var waiting candidate
	for a, h := range l.each {
		if !a.IsValid() {
			waiting.offer(&h.waiting, min(1, h.waiting.Len()))
			continue
		}
		waiting.offer(&h.waiting, h.waiting.Len())
		active.offer(&h.active, h.active.Len())
	}
	return cmp.Or(waiting.conn, active.conn)
}

// candidate is the oldest connection of an address with the most, nil = none yet.
type candidate struct {
	conn *conn
	most int
}

// offer considers the connections of another address, which count as n.
func (o *candidate) offer(of *list.List, n int) {
	if n < o.most || n == o.most && o.conn == nil {
		return
	}
	if c := of.Front().Value.(*conn); n > o.most || c.moved < o.conn.moved {
		o.conn, o.most = c, n
	}
}

// leave releases the slot of a connection. Further calls have no effect. The lock is held.
func (l *limited) leave(c *conn) {
	h := c.holder
	if h == nil {
		return
	}
	c.holder = nil
	c.move(nil)
	l.open--
	if h.waiting.Len()+h.active.Len() == 0 {
		delete(l.each, c.from)
	}
}

// peer returns the remote address of a connection.
func peer(c net.Conn) netip.Addr {
	at, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return at.AddrPort().Addr().Unmap().WithZone("")
}

// MaxHeader is the most bytes of a request's header. A query of [millrace.MaxQuery]
// characters has up to 48,000 when percent-encoded.
const MaxHeader = 64 << 10

// Busy is the HTTP/1.1 response to a connection above the limit.
const Busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Content-Length: 25\r\nRetry-After: 5\r\nConnection: close\r\n\r\n503 too many connections\n"

// Accept returns the next connection within the limit.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if limited := (&conn{Conn: c, l: l}); l.enter(limited) {
			return limited, nil
		}
		if l.words == "" {
			_ = c.Close()
			continue
		}
		if l.refused.Add(1) > maxRefused {
			l.refused.Add(-1)
			_ = c.Close()
			continue
		}
		go l.refuse(c)
	}
}

// maxRefused is the most connections above the limit that get a response at once.
const maxRefused = 256

// refuse responds and closes. It waits a moment for the client's data, because
// closing over unread bytes would drop the response.
func (l *limited) refuse(c net.Conn) {
	defer l.refused.Add(-1)
	defer func() { _ = c.Close() }() // nothing more to send
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte(l.words)); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, c, MaxHeader)
}

// conn is a connection of a limited listener.
type conn struct {
	net.Conn
	l    *limited
	from netip.Addr

	// Its place in the table, which the listener's lock guards.
	holder *holder // nil = closed
	in     *list.List
	place  *list.Element
	moved  uint64

	holding  bool
	buffered []byte
}

// Close releases the slot.
func (c *conn) Close() error {
	c.l.mu.Lock()
	c.l.leave(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// ReadFrom lets the kernel send files directly.
func (c *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }
