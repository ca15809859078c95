package protocol

import "github.com/millrace/millrace"

// Offer describes what a site publishes in a protocol, and the cost of reading it.
type Offer struct {
	Entry     string          // URL of the document that leads to all others
	Pages     int             // number of listed pages; -1 = unknown
	Estimated bool            // whether Pages is an estimate, for example from the beginning of a list
	Detail    millrace.Detail // how much of a page the protocol carries
	Fields    millrace.Fields // page fields that the protocol carries
	// WithoutContent is the number of pages that are listed without their content. Their content
	// must be fetched in another way.
	WithoutContent int
	// Deletes reports whether refreshes report deleted pages. If not, only a full read detects
	// them.
	Deletes bool

	// Collection is the URL of an uncompressed file of all pages with their content, or "". A
	// client that has a dictionary for the file fetches only its changes, including deletions.
	Collection string

	First     Cost // cost of reading the whole site once, without the content of the WithoutContent pages
	Unchanged Cost // cost of a refresh if nothing has changed
	Changed   Cost // cost of a refresh if something has changed, without the changed pages
	PerChange Cost // additional cost for each changed page
	// Basis describes the data on which the estimates are based, such as "the list, and 3 of its
	// 1,200 documents". If empty, the figures are exact.
	Basis string
}

// Cost is the number of requests and bytes that reading a site takes.
type Cost struct {
	Requests int64 `json:"requests"` // number of requests
	Bytes    int64 `json:"bytes"`    // number of body bytes as transferred
}

// Add returns c plus n times d.
func (c Cost) Add(d Cost, n int64) Cost {
	return Cost{c.Requests + n*d.Requests, c.Bytes + n*d.Bytes}
}
