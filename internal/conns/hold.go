package conns

import (
	"context"
	"net"
	"net/http"
	"strconv"
)

// MostHeld is how much a connection holds back: what the server collects before
// it writes.
const MostHeld = 4 << 10

type connKey struct{}

// Context lets the requests of a connection find it, as [http.Server.ConnContext]
// does. One with TLS has records of its own, which nothing may join.
func Context(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// Of returns the connection of a request, nil if it is not ours.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Hold begins a piece of an answer that is written at once: until release, what
// is small waits for what comes next, and goes out together with that. The server
// sends the start of a large piece by itself, as much of it as fits beside the
// header, and a write costs as much as some tens of kilobytes.
func (c *Conn) Hold() { c.holding = true }

// Release sends what is still held.
func (c *Conn) Release() error {
	c.holding = false
	if len(c.held) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.held)
	c.letGo()
	return err
}

// Write sends b, after what is held.
func (c *Conn) Write(b []byte) (int, error) {
	if n := len(c.held); n > 0 {
		both := net.Buffers{c.held, b}
		sent, err := both.WriteTo(c.Conn)
		c.letGo()
		return max(0, int(sent)-n), err
	}
	if c.holding && len(b) <= MostHeld {
		spare, _ := c.l.spare.Get().(*[MostHeld]byte)
		if spare == nil {
			spare = new([MostHeld]byte)
		}
		c.held = spare[:copy(spare[:], b)]
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// letGo gives the memory of what was held to other connections.
func (c *Conn) letGo() {
	c.l.spare.Put((*[MostHeld]byte)(c.held[:MostHeld]))
	c.held = nil
}

// collected is how much of a body net/http collects before it writes the header.
const collected = 2 << 10

// Write writes part of a response's body. If it is all of the body, the header
// goes out with it by one call of the system: a rest that net/http has collected takes
// what is held with it when the request ends.
func Write(ctx context.Context, w http.ResponseWriter, b []byte) (int, error) {
	if len(b) <= collected || !whole(w.Header()["Content-Length"], len(b)) {
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

// whole reports whether n bytes are the whole body.
func whole(size []string, n int) bool {
	if len(size) != 1 {
		return false
	}
	length, err := strconv.Atoi(size[0])
	return err == nil && length == n
}
