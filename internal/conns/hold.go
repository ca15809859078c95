package conns

import (
	"context"
	"net"
	"net/http"
	"strconv"
)

// bufferSize is the maximum number of bytes that a connection buffers. It is the size of the
// server's own buffer.
const bufferSize = 4 << 10

type connKey struct{}

// Context is an [http.Server.ConnContext] that makes a connection available to [Write]. TLS
// connections are excluded, because records cannot be joined.
func Context(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// Write sends b after any buffered bytes. During [Write], it buffers a short b if nothing is
// buffered yet.
func (c *conn) Write(b []byte) (int, error) {
	if n := len(c.buffered); n > 0 {
		both := net.Buffers{c.buffered, b}
		sent, err := both.WriteTo(c.Conn)
		c.release()
		return max(0, int(sent)-n), err
	}
	if c.holding && len(b) <= bufferSize {
		spare, _ := c.l.spare.Get().(*[bufferSize]byte)
		if spare == nil {
			spare = new([bufferSize]byte)
		}
		c.buffered = spare[:copy(spare[:], b)]
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// release returns the memory of the buffer to the pool.
func (c *conn) release() {
	c.l.spare.Put((*[bufferSize]byte)(c.buffered[:bufferSize]))
	c.buffered = nil
}

// collected is the number of bytes of a body that net/http buffers before it writes the header.
const collected = 2 << 10

// Write writes part of a response's body. It sends a complete body together with its header in one
// system call. Data that net/http has buffered is sent at the end of the request.
func Write(ctx context.Context, w http.ResponseWriter, b []byte) (int, error) {
	if len(b) <= collected || !isComplete(w.Header()["Content-Length"], len(b)) {
		return w.Write(b)
	}
	c, _ := ctx.Value(connKey{}).(*conn)
	if c == nil {
		return w.Write(b)
	}
	c.holding = true // small writes are buffered, and sent with the next write
	n, err := w.Write(b)
	c.holding = false
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
