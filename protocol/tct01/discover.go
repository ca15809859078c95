package tct01

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
)

const mediaType = "application/json"

// Announce says what the origin's own responses should say (1.4.1, 1.4.2):
// every list on its root, the M-URL on each page: in the header, and in the
// HTML unless draft-00 has its own M-URL there, since nothing tells them apart.
func (p *publisher) Announce(v millrace.View) millrace.Notice {
	site := v.Site()
	docs := strings.TrimSuffix(site.Docs, "/")
	root := docs
	if u, err := url.Parse(docs); err == nil {
		root = u.EscapedPath()
	}
	var n millrace.Notice
	shards := p.shards(site)
	for i := range shards {
		n.Root = append(n.Root, millrace.Link{URL: root + listName(i, shards), Rel: "index", Type: mediaType})
		n.Entries = append(n.Entries, millrace.Entry{URL: docs + listName(i, shards), Type: mediaType, Spec: source})
	}
	n.Page = func(ctx context.Context, identity string) ([]millrace.Link, error) {
		path, err := p.path(ctx, v, identity)
		if errors.Is(err, millrace.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []millrace.Link{{URL: docs + path, Rel: "alternate", Type: mediaType, HTML: p.elements}}, nil
	}
	return n
}
