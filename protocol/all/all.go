// Package all is the only list of the protocols. A program that needs one
// protocol imports its package; the command line, which needs all, imports this.
package all

import (
	"slices"

	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/arc"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/protocol/scp"
	"github.com/millrace/millrace/protocol/tct"
	"github.com/millrace/millrace/protocol/web"
)

// Protocols gives every protocol, in the order in which they are shown.
func Protocols() []protocol.Protocol {
	return []protocol.Protocol{
		scp.Protocol(),
		tct.Draft03(),
		tct.Draft01(),
		tct.Draft00(),
		openfeeder.Protocol(),
		arc.Protocol(),
		web.Protocol(),
	}
}

// Published returns the protocols that a site is published in: every one but those on
// request, and of those the named ones.
func Published(also ...string) []protocol.Protocol {
	return slices.DeleteFunc(Protocols(), func(p protocol.Protocol) bool { return p.OnRequest && !slices.Contains(also, p.Name) })
}

// Label returns the name of a protocol for people; of another way to read a site, its
// name.
func Label(name string) string {
	for _, p := range Protocols() {
		if p.Name == name {
			return p.Label
		}
	}
	return name
}
