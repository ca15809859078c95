package main

import (
	"fmt"

	"github.com/millrace/millrace/protocol"
)

// listing are the flags about the lists that protocols have of a site's pages.
type listing struct {
	MaxList   int64 `placeholder:"MIB" help:"Most that a list of all pages may have, without coding (default: 100), by tct-00 and arc, and of each of several by tct-01 and tct-03. Of the others, the specifications say how long something may be."`
	Handshake bool  `help:"By tct-00, ask every page, too, whether it leads to the document that the list names for it: one more request for each document that is read."`
}

// maxMaxList is the most that a list can be allowed to have, in MiB: it is kept
// in the folder for temporary files.
const maxMaxList = 1 << 20

func (c *listing) validate() error {
	if c.MaxList < 0 || c.MaxList > maxMaxList {
		return usageError(fmt.Sprintf("--max-list %d: want a number of MiB from 1 to %d", c.MaxList, maxMaxList))
	}
	return nil
}

// set tells readers.
func (c *listing) set(o *protocol.ReaderOptions) {
	o.MaxList, o.Handshake = c.MaxList<<20, c.Handshake
}
