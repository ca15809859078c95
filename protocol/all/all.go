// Package all lists all protocols. A program that needs one protocol imports the package of that
// protocol; the millrace command needs all protocols and imports this one.
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

// Published returns the protocols in which a site is published with the options o. Unless they are
// in Also, it omits protocols with OnRequest, protocols with Repeats if Compact is set, and
// protocols with Elements if NoElements is set. Nil options mean the zero value.
func Published(o *protocol.PublisherOptions) []protocol.Protocol {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	return slices.DeleteFunc(Protocols(), func(p protocol.Protocol) bool {
		return (p.OnRequest || o.Compact && p.Repeats || o.NoElements && p.Elements) && !slices.Contains(o.Also, p.Name)
	})
}

// Label returns the display name of a protocol. For any other way to read a site, it returns name.
func Label(name string) string {
	for _, p := range Protocols() {
		if p.Name == name {
			return p.Label
		}
	}
	return name
}
