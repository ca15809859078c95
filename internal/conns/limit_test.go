package conns

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
)

// knocks is a listener with prepared connections.
type knocks []net.Conn

func (k *knocks) Accept() (net.Conn, error) {
	if len(*k) == 0 {
		return nil, io.EOF
	}
	c := (*k)[0]
	*k = (*k)[1:]
	return c, nil
}

func (k *knocks) Close() error   { return nil }
func (k *knocks) Addr() net.Addr { return new(net.TCPAddr) }

// knock is a connection from an address.
type knock struct {
	net.Conn
	from netip.Addr
}

func (k knock) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(k.from, 4711))
}

// One address gets at most half of the slots, and only a few while others need the rest. A
// proxy is not limited.
func TestLimitOfOneAddress(t *testing.T) {
	const most, few = 80, 5
	proxy := netip.MustParseAddr("2001:db8:1::1")
	var dials knocks
	l := Limit(&dials, most, "", func(a netip.Addr) bool { return a == proxy })
	var open []net.Conn
	come := func(who string, n, want int, from func(i int) string) {
		t.Helper()
		for i := range n {
			c, other := net.Pipe()
			t.Cleanup(func() { _ = other.Close() })
			dials = append(dials, knock{c, netip.MustParseAddr(from(i))})
		}
		before := len(open)
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			open = append(open, c)
		}
		if in := len(open) - before; in != want {
			t.Errorf("%s: %d of %d get in, want %d", who, in, n, want)
		}
	}
	come("one address", most, most/2, func(int) string { return "192.0.2.1" })
	come("another", 2*few, few, func(int) string { return "::ffff:192.0.2.2" })
	come("a network", 2*few, few, func(i int) string { return fmt.Sprintf("2001:db8::%x", i) })
	come("several", 10, 10, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) })
	come("a proxy", most, most/2-2*few-10, func(int) string { return proxy.String() })
	come("no other client", 1, 0, func(int) string { return "203.0.113.1" })
	for _, c := range open {
		_, _ = c.Close(), c.Close() // the second call has no effect
	}
	if own := l.(*limited); own.open != 0 || len(own.each) != 0 {
		t.Errorf("%d slots of %d addresses are not released", own.open, len(own.each))
	}
}
