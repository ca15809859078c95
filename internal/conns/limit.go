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

// Limit returns a listener that has at most most connections at once. Others get
// what words say, if anything, and are closed. Half of the places anybody may
// take, as many as there are; the others are for addresses that have few, so
// that no single one keeps everybody out, and for proxies, by whom many come.
func Limit(ln net.Listener, most int, words string, proxy func(netip.Addr) bool) net.Listener {
	return &limited{Listener: ln, most: most, words: words, proxy: proxy, each: make(map[netip.Addr]int)}
}

type limited struct {
	net.Listener
	most    int
	words   string // of HTTP; "" where the client would not understand them
	proxy   func(netip.Addr) bool
	refused atomic.Int64
	spare   sync.Pool // of *[mostHeld]byte

	mu   sync.Mutex
	open int
	each map[netip.Addr]int // by address, of IPv6 by network
}

// few is how many connections an address has at most, once half of the places
// are taken.
func (l *limited) few() int { return max(4, l.most/16) }

// enter takes a place for an address, if there is one.
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

// peer gives the address of a connection's other end.
func peer(c net.Conn) netip.Addr {
	at, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return at.AddrPort().Addr().Unmap().WithZone("")
}

// MaxHeader is the maximum number of bytes in a request's header. A question of
// [millrace.MaxQuery] characters, percent-encoded, is up to 48,000.
const MaxHeader = 64 << 10

// Busy is a response by HTTP/1.1 to a connection too many.
const Busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Content-Length: 25\r\nRetry-After: 5\r\nConnection: close\r\n\r\n503 too many connections\n"

// Accept gives the next connection that there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if from := peer(c); l.enter(from) {
			return &Conn{Conn: c, l: l, from: from}, nil
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

// maxRefused is how many connections are answered at once that there are too many.
const maxRefused = 256

// refuse answers and closes. It waits a moment for what the client sends,
// because closing over unread bytes would take the answer back.
func (l *limited) refuse(c net.Conn) {
	defer l.refused.Add(-1)
	defer func() { _ = c.Close() }() // nothing more can be said
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte(l.words)); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, c, MaxHeader)
}

// Conn is a connection of a limited listener.
type Conn struct {
	net.Conn
	l    *limited
	from netip.Addr
	once sync.Once

	holding bool
	held    []byte
}

// Close gives the place back.
func (c *Conn) Close() error {
	c.once.Do(func() { c.l.leave(c.from) })
	return c.Conn.Close()
}

// ReadFrom keeps the way open by which the kernel sends files itself.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }
