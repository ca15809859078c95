package export

import (
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/terms"
	"github.com/millrace/millrace/protocol"
)

// merged is what all documents of a site say together, for forms with one value a
// field.
type merged struct {
	millrace.Policy
	documents []string
}

// purposes lists what policies tell apart, in the order of columns.
var purposes = []millrace.Purpose{millrace.AIInput, millrace.AITrain, millrace.Search}

func merge(docs []protocol.Terms) *merged {
	p, urls := terms.Merge(docs)
	return &merged{p, urls}
}
