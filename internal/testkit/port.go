package testkit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port of 127.0.0.1 on which nothing listens. It is below the ports that
// systems use for outgoing connections, so that it stays free until a server listens on it.
func FreePort(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		ln, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = ln.Close()
			return port
		}
	}
	tb.Fatal("no free port of 127.0.0.1 was found")
	return ""
}
