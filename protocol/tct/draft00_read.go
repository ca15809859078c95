package tct

import (
	"context"
	"strings"

	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/protocol"
)

// reader00 is the source that a site in TCT draft-00 is. Policy gives what the site's
// policy descriptor says (7).
type reader00 struct{ *tctReader }

// placesOfList returns where the list may be: at the root of the endpoint's origin,
// and in the folder of the endpoint.
func placesOfList(_ context.Context, r *tctReader) (found []listState, cost protocol.Cost, err error) {
	for _, at := range r.places(listName00) {
		found = append(found, listState{URL: at})
	}
	return found, cost, nil
}

// places gives the URLs where a document may be that a site has once.
func (r *tctReader) places(name string) []string {
	out := []string{strings.TrimSuffix(r.Root, "/") + name}
	path, _ := docname.CutQuery(r.Endpoint)
	if folder := path[:strings.LastIndexByte(path, '/')]; folder+"/" != r.Root {
		out = append(out, folder+name)
	}
	return out
}
