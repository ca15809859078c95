package daemon

import (
	"fmt"
	"net"
	"strings"
)

// Notify sends the state of the process to systemd, or a compatible service manager, in lines
// such as READY=1. socket is the value of NOTIFY_SOCKET; if it is empty, Notify does nothing.
func Notify(socket string, lines ...string) error {
	if socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	defer func() { _ = c.Close() }() // a message is sent at once, or not at all
	if _, err = fmt.Fprint(c, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}
