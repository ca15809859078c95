// Package all lists all protocols. A program that needs one protocol imports its package; the
// millrace command, which needs all of them, imports this one.
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

// Protocols returns every protocol, in display order.
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

// Published returns the protocols in which a site is published with the options o: those
// without OnRequest, if o is not Compact also those with Repeats, if o is not NoElements also
// those with Elements, and those in Also. Nil options mean the zero value.
func Published(o *protocol.PublisherOptions) []protocol.Protocol {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	return slices.DeleteFunc(Protocols(), func(p protocol.Protocol) bool {
		return (p.OnRequest || o.Compact && p.Repeats || o.NoElements && p.Elements) && !slices.Contains(o.Also, p.Name)
	})
}

// Label returns the display name of a protocol. For any other way to read a site it returns
// name.
func Label(name string) string {
	for _, p := range Protocols() {
		if p.Name == name {
			return p.Label
		}
	}
	return name
}
