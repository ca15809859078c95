package gateway

import (
	"context"
	"net"
)

// mostHeld is how much a connection holds back: what the server collects before
// it writes.
const mostHeld = 4 << 10

type connKey struct{}

// withConn lets the requests of a connection find it. One with TLS has records of
// its own, which nobody else may join.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*counted); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// connOf gives the connection of a request, nil if it is not ours.
func connOf(ctx context.Context) *counted {
	c, _ := ctx.Value(connKey{}).(*counted)
	return c
}

// hold begins a piece of an answer that is written at once: until release, what
// is small waits for what comes next, and goes out together with that. The server
// sends the start of a large piece by itself, as much of it as fits beside the
// header, and a write costs as much as some tens of kilobytes.
func (c *counted) hold() { c.holding = true }

// release sends what is still held.
func (c *counted) release() error {
	c.holding = false
	if len(c.held) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.held)
	c.letGo()
	return err
}

// Write sends b, after what is held.
func (c *counted) Write(b []byte) (int, error) {
	if n := len(c.held); n > 0 {
		both := net.Buffers{c.held, b}
		sent, err := both.WriteTo(c.Conn)
		c.letGo()
		return max(0, int(sent)-n), err
	}
	if c.holding && len(b) <= mostHeld {
		spare, _ := c.l.spare.Get().(*[mostHeld]byte)
		if spare == nil {
			spare = new([mostHeld]byte)
		}
		c.held = spare[:copy(spare[:], b)]
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// letGo gives the memory of what was held to other connections.
func (c *counted) letGo() {
	c.l.spare.Put((*[mostHeld]byte)(c.held[:mostHeld]))
	c.held = nil
}
