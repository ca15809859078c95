package protocol

import "github.com/millrace/millrace"

// Offer describes what a site publishes in a protocol and what reading it costs.
type Offer struct {
	Entry     string          // URL of the document that links to all others
	Pages     int             // number of listed pages; -1 = unknown
	Estimated bool            // Pages is an estimate, for example from the start of a list
	Detail    millrace.Detail // how much of a page the protocol carries
	Fields    millrace.Fields // page fields that the protocol carries
	// WithoutContent is the number of pages that are listed without their content, which must
	// be fetched another way.
	WithoutContent int
	// Deletes reports that a refresh reports deleted pages. Otherwise only a complete reading
	// finds them.
	Deletes bool

	// Collection is the URL of an uncompressed file of all pages with their content. A client
	// that has a dictionary for it reads changes and deletions there. "" = none.
	Collection string

	First Cost // one complete reading, without the pages in WithoutContent
	Still Cost // a refresh when nothing has changed
	Moved Cost // a refresh when something has changed, except the changed pages
	Each  Cost // added to Moved for each changed page
	// Named is the number of bytes of Each that name the page: each changed page adds them to
	// Moved for [Protocol.Deletions].
	Named int64

	// Basis describes what the estimates are based on, such as "the list, and 3 of its 1,200
	// documents"; "" = exact counts.
	Basis string
}

// Cost is the number of requests and bytes of a reading.
type Cost struct {
	Requests int64 `json:"requests"` // number of requests
	Bytes    int64 `json:"bytes"`    // bytes of bodies, as sent
}

// Add returns c plus n times d.
func (c Cost) Add(d Cost, n int64) Cost {
	return Cost{c.Requests + n*d.Requests, c.Bytes + n*d.Bytes}
}
