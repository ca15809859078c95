package main

import (
	"fmt"

	"github.com/millrace/millrace/protocol"
)

// listFlags holds the flags for the page lists of protocols.
type listFlags struct {
	MaxList        int64 `placeholder:"MIB" help:"Maximum decoded size of a list of all pages (default: 100). It applies to tct-00 and arc, and to each list file of tct-01 and tct-03. The other specifications set their own limits."`
	CheckPageLinks bool  `help:"With tct-00: also check that each page links to the document that the list names for it. This costs one more request per document."`
}

// maxMaxList is the maximum value of --max-list in MiB. It limits the space in the folder for
// temporary files, where lists are stored.
const maxMaxList = 1 << 20

func (c *listFlags) validate() error {
	if c.MaxList < 0 || c.MaxList > maxMaxList {
		return usageError(fmt.Sprintf("--max-list %d: must be a number of MiB from 1 to %d", c.MaxList, maxMaxList))
	}
	return nil
}

// set sets the options of readers.
func (c *listFlags) set(o *protocol.ReaderOptions) {
	o.MaxList, o.CheckPageLinks = c.MaxList<<20, c.CheckPageLinks
}
