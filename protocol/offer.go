package protocol

import "github.com/millrace/millrace"

// Offer is what a site has in a protocol, and what it costs to read.
type Offer struct {
	Entry     string          // URL of the document that leads to all others
	Pages     int             // number of pages it names; -1 = unknown
	Estimated bool            // Pages is an estimate, for example from the beginning of a list
	Detail    millrace.Detail // how much it carries of a page
	Fields    millrace.Fields // the page fields that it carries
	// WithoutContent is the number of pages it names without their content, which
	// has to be fetched another way.
	WithoutContent int
	// Deletes: a refresh reports deleted pages. Otherwise they are found by reading
	// everything again.
	Deletes bool

	First Cost // everything, once, except the content of pages without it
	Still Cost // a refresh when nothing has changed
	Moved Cost // a refresh when something has changed, without the changed pages
	Each  Cost // what each changed page adds to Moved
	// Named is how many bytes of Each name the page: what each changed page adds to
	// Moved for a [DeletionReader].
	Named int64

	// Basis says what the figures rest on, such as "the list, and 3 of its 1,200
	// documents"; "" = everything was counted.
	Basis string
}

// Cost is what reading something takes.
type Cost struct {
	Requests int64 `json:"requests"` // number of requests
	Bytes    int64 `json:"bytes"`    // bytes of bodies, as sent
}

// Add gives c and n times d.
func (c Cost) Add(d Cost, n int64) Cost {
	return Cost{c.Requests + n*d.Requests, c.Bytes + n*d.Bytes}
}
