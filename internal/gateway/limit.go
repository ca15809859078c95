package gateway

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// limit gives a listener that has at most most connections at once. Others are
// told what words say, if anything, and closed.
func limit(ln net.Listener, most int64, words string) net.Listener {
	return &limited{Listener: ln, most: most, words: words}
}

type limited struct {
	net.Listener
	most    int64
	words   string // of HTTP; "" where the client would not understand them
	open    atomic.Int64
	refused atomic.Int64
}

const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Content-Length: 25\r\nRetry-After: 5\r\nConnection: close\r\n\r\n503 too many connections\n"

// Accept gives the next connection that there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &counted{Conn: c, l: l}, nil
		}
		l.open.Add(-1)
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

// maxRefused is how many connections are told at once that there is no room.
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
	_, _ = io.CopyN(io.Discard, c, maxHeader)
}

type counted struct {
	net.Conn
	l    *limited
	once sync.Once
}

// Close gives the place back.
func (c *counted) Close() error {
	c.once.Do(func() { c.l.open.Add(-1) })
	return c.Conn.Close()
}

// ReadFrom keeps the way open by which the kernel sends files itself.
func (c *counted) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }
