package conns

import (
	"context"
	"net"
	"net/http"
	"strconv"
)

// MostHeld is the most bytes that a connection buffers: the size of the server's
// own buffer.
const MostHeld = 4 << 10

type connKey struct{}

// Context makes a connection available to its requests, as
// [http.Server.ConnContext]. TLS connections are excluded, because records cannot
// be joined.
func Context(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// Of returns the connection of a request, nil if absent.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Hold begins a write of one piece: until Release, small writes are buffered and
// sent with the next. The server sends the start of a large piece separately, and a
// write costs as much as some tens of kilobytes.
func (c *Conn) Hold() { c.holding = true }

// Release sends the buffer.
func (c *Conn) Release() error {
	c.holding = false
	if len(c.buffered) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.buffered)
	c.letGo()
	return err
}

// Write sends the buffer and b.
func (c *Conn) Write(b []byte) (int, error) {
	if n := len(c.buffered); n > 0 {
		both := net.Buffers{c.buffered, b}
		sent, err := both.WriteTo(c.Conn)
		c.letGo()
		return max(0, int(sent)-n), err
	}
	if c.holding && len(b) <= MostHeld {
		spare, _ := c.l.spare.Get().(*[MostHeld]byte)
		if spare == nil {
			spare = new([MostHeld]byte)
		}
		c.buffered = spare[:copy(spare[:], b)]
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// letGo returns the memory of the buffer to the pool.
func (c *Conn) letGo() {
	c.l.spare.Put((*[MostHeld]byte)(c.buffered[:MostHeld]))
	c.buffered = nil
}

// collected is the part of a body that net/http buffers before it writes the
// header.
const collected = 2 << 10

// Write writes part of a response's body. A complete body is sent with its header
// in one system call; what net/http has buffered follows at the end of the request.
func Write(ctx context.Context, w http.ResponseWriter, b []byte) (int, error) {
	if len(b) <= collected || !isComplete(w.Header()["Content-Length"], len(b)) {
		return w.Write(b)
	}
	conn := Of(ctx)
	if conn == nil {
		return w.Write(b)
	}
	conn.Hold()
	n, err := w.Write(b)
	conn.holding = false
	return n, err
}

// isComplete reports whether n bytes are the whole body.
func isComplete(size []string, n int) bool {
	if len(size) != 1 {
		return false
	}
	length, err := strconv.Atoi(size[0])
	return err == nil && length == n
}
