package main

import (
	"fmt"
	"net"
	"strings"
)

// notify sends the state of the service to systemd, or a compatible service manager, in lines
// such as READY=1.
func (p *process) notify(lines ...string) {
	name, ok := p.lookup("NOTIFY_SOCKET")
	if !ok || name == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err == nil {
		_, err = fmt.Fprint(c, strings.Join(lines, "\n"))
		_ = c.Close() // a message is sent at once or not at all
	}
	if err != nil {
		p.log.Warn("notify service manager failed", "path", name, "err", err)
	}
}
