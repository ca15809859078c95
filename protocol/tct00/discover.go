package tct00

import (
	"context"
	"errors"
	"strings"

	"github.com/millrace/millrace"
)

const mediaType = "application/json"

// Announce says what the pages should say: their M-URL, in an element of
// their HTML (3.1). The header of a page is where draft-01 has its own.
func (p *publisher) Announce(v millrace.View) millrace.Notice {
	docs := strings.TrimSuffix(v.Site().Docs, "/")
	entries := []millrace.Entry{{URL: docs + listName, Type: mediaType, Spec: source}}
	allow := []string{listName, policyName, manifestName, docName + "$", "/*" + docName + "$"}
	return millrace.Notice{Public: []string{policyName, manifestName}, Allow: allow, Entries: entries, Page: func(ctx context.Context, identity string) ([]millrace.Link, error) {
		path, err := p.path(ctx, v, identity)
		if errors.Is(err, millrace.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []millrace.Link{{URL: docs + path, Rel: "alternate", Type: mediaType, HTML: true, NoField: true}}, nil
	}}
}
