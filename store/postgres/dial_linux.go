package postgres

import (
	"strings"
	"syscall"
)

// tcpUserTimeout is the option TCP_USER_TIMEOUT, see tcp(7).
const tcpUserTimeout = 0x12

// limitUnacknowledged limits the time for which the kernel retransmits packets to a host that does not
// acknowledge them.
func limitUnacknowledged(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(userTimeout.Milliseconds())) // on failure, the kernel's limit applies
	})
}
