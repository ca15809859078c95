package conns

import (
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/access"
)

// Limit returns a listener with at most the given number of connections. At that number, a new
// connection replaces another one; see [limited.victim]. If none can be replaced, Limit sends
// response, if any, on the new connection and closes it. While more than a sixteenth of the
// connections wait for their first request, Limit closes a new connection from an address that
// already has several of these. If the process has as many open files as the system allows, Limit
// closes an eighth of the connections, chosen in the same way. The server must use [State].
func Limit(ln net.Listener, most int, response string, proxy func(netip.Addr) bool, log *slog.Logger) net.Listener {
	return &limited{Listener: ln, most: most, response: response, proxy: proxy, log: log, each: make(map[netip.Addr]*holder), began: time.Now()}
}

type limited struct {
	net.Listener
	most     int
	response string // an HTTP response; "" if the client would not understand it
	proxy    func(netip.Addr) bool
	log      *slog.Logger
	began    time.Time
	refused  atomic.Int64
	spare    sync.Pool // unused buffers, as *[bufferSize]byte

	mu    sync.Mutex
	open  int
	fresh int                    // number of connections without a first request
	each  map[netip.Addr]*holder // holders by address, for IPv6 by network; all proxies share the zero address
	freed time.Time              // time of the last log message of free
}

// state is the event for which a connection waits.
type state int

const (
	fresh  state = iota // the complete header of the first request
	idle                // the complete header of another request
	active              // the end of a request
)

// holder contains the connections of an address by state, in the order of their last change.
type holder [active + 1]list.List

// State is an [http.Server.ConnState] that follows the requests of a connection.
func State(c net.Conn, s http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if c, ok := c.(*conn); ok && (s == http.StateActive || s == http.StateIdle) {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		switch {
		case c.holder == nil: // closed
		case s == http.StateActive:
			c.leave()
			c.enter(active)
		default:
			c.leave()
			c.enter(idle)
		}
	}
}

// enter adds the connection to the list of a state. The caller holds the lock.
func (c *conn) enter(s state) {
	c.state, c.since = s, time.Now()
	c.element = c.holder[s].PushBack(c)
	if s == fresh {
		c.l.fresh++
	}
}

// leave removes the connection from the list of its state. The caller holds the lock.
func (c *conn) leave() {
	c.holder[c.state].Remove(c.element)
	if c.state == fresh {
		c.l.fresh--
	}
}

// few is the maximum number of fresh connections of an address while many connections are fresh,
// if the address's oldest one waits for bytes.
const few = 4

// enter takes a slot for a connection, if one is available. flood reports that many connections are
// fresh, and several of them are from the connection's address.
func (l *limited) enter(c *conn) (entered, flood bool) {
	if a := access.Network(peer(c.Conn)); a.IsValid() && !l.proxy(peer(c.Conn)) {
		c.from = a
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.each[c.from]; l.fresh >= l.most/16 && own != nil && own[fresh].Len() >= few && c.from.IsValid() && own[fresh].Front().Value.(*conn).waits() {
		return false, true
	}
	full := l.open >= l.most
	if !l.replace(c.from, full) && full {
		return false, false
	}
	c.holder = l.each[c.from]
	if c.holder == nil {
		c.holder = new(holder)
		l.each[c.from] = c.holder
	}
	l.open++
	c.enter(fresh)
	return true, false
}

// replace closes the connection that a new connection from an address replaces, if any, and
// reports whether it did. The caller holds the lock.
func (l *limited) replace(from netip.Addr, full bool) bool {
	out := l.victim(from, full)
	if out != nil {
		l.leave(out)
		_ = out.Conn.Close() // its request fails
	}
	return out != nil
}

// free closes an eighth of the connections, because err reports that no more files can be opened.
func (l *limited) free(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.freed) >= time.Minute {
		l.freed = now
		l.log.Error("too many open files; closing connections; raise the limit with ulimit -n, or LimitNOFILE in systemd", "count", l.open, "err", err)
	}
	for range l.open/8 + 1 {
		l.replace(netip.Addr{}, true)
	}
}

// victim returns the connection that a new connection from an address replaces, or nil. It takes
// the first state in which a connection can be replaced, and in that state the oldest connection
// of the address with the most. An address loses an active connection only to an address with at
// least two fewer active connections. Proxies never lose an active connection, and lose a fresh or
// idle one only if no other address has two in that state. If the table is not full, the victim is
// a fresh connection that waits for bytes. The caller holds the lock.
func (l *limited) victim(from netip.Addr, full bool) (out *conn) {
	most, last := 0, active
	if !full {
		if most, last = few, fresh; l.fresh < l.most/16 {
			return nil
		}
	}
	for s := fresh; s <= last && out == nil; s++ {
		if s == active {
			most = 1
			if own := l.each[from]; own != nil {
				most += own[active].Len()
			}
		}
		for a, h := range l.each {
			n := h[s].Len()
			if !a.IsValid() {
				n = min(n, 1)
			}
			if n < most || n == most && out == nil || s == active && !a.IsValid() {
				continue
			}
			if c := h[s].Front().Value.(*conn); (full || c.waits()) && (n > most || c.since.Before(out.since)) {
				most, out = n, c
			}
		}
	}
	return out
}

// leave releases the slot of a connection. Further calls have no effect. The caller holds the lock.
func (l *limited) leave(c *conn) {
	h := c.holder
	if h == nil {
		return
	}
	c.leave()
	c.holder = nil
	l.open--
	if h[fresh].Len()+h[idle].Len()+h[active].Len() == 0 {
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

// MaxHeader is the maximum size of a request's header in bytes. A query of [millrace.MaxQuery]
// characters has up to 48,000 bytes when percent-encoded.
const MaxHeader = 64 << 10

// Busy is the HTTP/1.1 response to a connection above the limit.
const Busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Content-Length: 25\r\nRetry-After: 5\r\nConnection: close\r\n\r\n503 too many connections\n"

// Accept returns the next connection within the limit.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) {
			l.free(err) // the server tries again
		}
		if err != nil {
			return nil, err
		}
		limited := &conn{Conn: c, l: l}
		entered, flood := l.enter(limited)
		if entered {
			return limited, nil
		}
		if l.response == "" || flood {
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

// maxRefused is the maximum number of connections above the limit that get a response at the same
// time.
const maxRefused = 256

// refuse sends a response and closes the connection. Between these, it waits briefly for the
// client's data, because closing a connection with unread bytes would drop the response.
func (l *limited) refuse(c net.Conn) {
	defer l.refused.Add(-1)
	defer func() { _ = c.Close() }() // nothing is left to send
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte(l.response)); err != nil {
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

	// Position of the connection in the table, guarded by the listener's lock.
	holder  *holder // If nil, the connection is closed.
	state   state
	element *list.Element
	since   time.Time // start of the state

	reads atomic.Int64 // when a pending Read began, in nanoseconds after l.began, or 0

	holding  bool
	buffered []byte
}

// Read records when the connection began to wait for bytes.
func (c *conn) Read(b []byte) (int, error) {
	c.reads.Store(int64(time.Since(c.l.began)))
	defer c.reads.Store(0)
	return c.Conn.Read(b)
}

// waits reports whether the connection waits for bytes of the client. It returns false if bytes
// have arrived and its goroutine has not read them yet.
func (c *conn) waits() bool {
	at := time.Duration(c.reads.Load())
	return at > 0 && time.Since(c.l.began)-at >= time.Millisecond
}

// Close closes the connection and releases its slot.
func (c *conn) Close() error {
	c.l.mu.Lock()
	c.l.leave(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// ReadFrom lets the kernel send files directly.
func (c *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }
