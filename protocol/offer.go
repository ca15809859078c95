package protocol

import "github.com/millrace/millrace"

// Offer is what a site has in one protocol, and what it costs to read it there.
// Figures are of bodies as they are sent; who compares ways adds the headers of
// the requests.
type Offer struct {
	Entry  string          // URL of the document that everything else is found from
	Pages  int             // that it names; -1 = unknown
	Around bool            // Pages is estimated, such as by the beginning of a list
	Detail millrace.Detail // of what it carries of a page
	Fields millrace.Fields // that it speaks for
	// Bare is how many of the pages it names without their content, which then
	// has to come another way.
	Bare int
	// Deletes: a refresh tells of the pages that are gone. Without it they are
	// found by reading everything again.
	Deletes bool

	First Cost // everything, once, but the content of those that are bare
	Still Cost // a refresh when nothing has changed
	Moved Cost // a refresh when something has, without the pages that have
	Each  Cost // what each changed page adds to Moved
	// Named is how many bytes of Each name the page: what each changed page adds
	// to Moved for somebody who asks for deletions alone ([DeletionReader]).
	Named int64

	// Basis says in words what the figures rest on, such as "the list, and 3 of
	// its 1,200 documents"; "" = all of them were counted.
	Basis string
}

// Cost is what reading something takes.
type Cost struct {
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"` // of bodies, as they are sent
}

// Add gives c and n times d.
func (c Cost) Add(d Cost, n int64) Cost {
	return Cost{c.Requests + n*d.Requests, c.Bytes + n*d.Bytes}
}
