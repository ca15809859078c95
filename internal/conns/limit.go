package conns

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/access"
)

// Limit returns a listener with at most most connections. Others get words, if any,
// and are closed. The first half is for any address. The rest is for addresses with
// few connections and for proxies, so that no single address blocks the others.
func Limit(ln net.Listener, most int, words string, proxy func(netip.Addr) bool) net.Listener {
	return &limited{Listener: ln, most: most, words: words, proxy: proxy, each: make(map[netip.Addr]int)}
}

type limited struct {
	net.Listener
	most    int
	words   string // an HTTP response; "" if the client would not understand it
	proxy   func(netip.Addr) bool
	refused atomic.Int64
	spare   sync.Pool // of *[bufferSize]byte

	mu   sync.Mutex
	open int
	each map[netip.Addr]int // by address, for IPv6 by network
}

// few is the most connections of an address once half are taken.
func (l *limited) few() int { return max(4, l.most/16) }

// enter takes a slot for an address, if available.
func (l *limited) enter(address netip.Addr) bool {
	from := access.Network(address)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most || l.open >= l.most/2 && l.each[from] >= l.few() && address.IsValid() && !l.proxy(address) {
		return false
	}
	l.open++
	l.each[from]++
	return true
}

func (l *limited) leave(address netip.Addr) {
	from := access.Network(address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.each[from]--; l.each[from] == 0 {
		delete(l.each, from)
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
		if from := peer(c); l.enter(from) {
			return &conn{Conn: c, l: l, from: from}, nil
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
	once sync.Once

	holding  bool
	buffered []byte
}

// Close releases the slot.
func (c *conn) Close() error {
	c.once.Do(func() { c.l.leave(c.from) })
	return c.Conn.Close()
}

// ReadFrom lets the kernel send files directly.
func (c *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }
