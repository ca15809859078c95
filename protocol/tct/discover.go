package tct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// Advertise returns the links to a site's lists and M-URLs. If lists have no fixed path, the root
// links to all of them. If two drafts link to their M-URLs in the HTML of a page, clients find out
// from the documents which one belongs to their draft.
func (p *publisher) Advertise(v millrace.View) millrace.Advertisement {
	site := v.Site()
	a := millrace.Advertisement{Public: p.Public, Page: p.alternate(v)}
	name := string(p.Names)
	if strings.HasSuffix(name, "/") {
		name += "$"
	}
	if p.OneList {
		a.Allow = append([]string{p.List + ".json"}, p.Public...)
	} else {
		a.Allow = []string{"/$", p.List} // the root contains the links
	}
	a.Allow = append(a.Allow, name, "/*"+name)
	shards := p.shards(site)
	for i := range shards {
		list := p.listName(i, shards)
		at := strings.TrimSuffix(site.EndpointBase, "/") + list
		if !p.OneList {
			l := millrace.Link{URL: rooted(site, list), Rel: "index", Type: mediaType}
			if p.AbsoluteURL {
				l.URL, l.HTML = at, p.RootHTML
			}
			a.Root = append(a.Root, l)
		}
		a.Entries = append(a.Entries, millrace.Entry{URL: at, Type: mediaType, Spec: p.Source()})
	}
	return a
}

// alternate returns the value of [millrace.Advertisement].Page: a function that returns a page's
// link to its M-URL, in the form of PageLink.
func (d *draft) alternate(v millrace.View) func(ctx context.Context, pageURL string) ([]millrace.Link, error) {
	docs := strings.TrimSuffix(v.Site().EndpointBase, "/")
	return func(ctx context.Context, pagePath string) ([]millrace.Link, error) {
		var path string
		t, err := v.Tag(ctx, d.Name, pagePath)
		if err == nil {
			path = d.path(v.Site(), t)
		} else if pagePath == homeOf(v.Site()) && errors.Is(err, millrace.ErrNotFound) {
			path, err = d.overviewPath(ctx, v)
		}
		if errors.Is(err, millrace.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		l := d.PageLink
		l.URL, l.Rel, l.Type = docs+path, "alternate", mediaType
		return []millrace.Link{l}, nil
	}
}

// maxLists is the maximum number of lists that a root may announce.
const maxLists = 1000

// discover returns the URLs at which a site's lists may be, and the cost of finding them.
func (r *tctReader) discover(ctx context.Context) (found []kit.Resource, cost protocol.Cost, err error) {
	if !r.d.OneList {
		return announcedLists(ctx, r)
	}
	for _, at := range r.candidates(r.d.List + ".json") {
		found = append(found, kit.Resource{URL: at})
	}
	return found, cost, nil
}

// announcedLists requests the origin's root, and returns the lists that it announces (1.4.1).
func announcedLists(ctx context.Context, r *tctReader) (found []kit.Resource, cost protocol.Cost, err error) {
	resp, err := r.Open(ctx, "discovery", r.Root, kit.HTMLTypes, fetch.Validators{})
	if err != nil {
		return nil, cost, err
	}
	defer resp.Body.Close()
	cost.Requests = 1
	links := weblink.Header(resp.Header, resp.Request.URL)
	if r.d.RootHTML && weblink.IsHTML(resp.Header) && !slices.ContainsFunc(links, func(l weblink.Link) bool { return l.Is("index", mediaType) }) {
		body, err := fetch.Decode(resp)
		if err != nil {
			return nil, cost, fmt.Errorf("%s: discovery: %w", r.d.Name, err)
		}
		links = weblink.HTML(body, resp.Request.URL).Links
		_ = body.Close()
	}
	n, _ := io.CopyN(io.Discard, resp.Body, 64<<10) // allows reuse of the connection
	cost.Bytes += n
	for _, l := range links {
		switch {
		case !l.Is("index", mediaType), slices.Contains(found, kit.Resource{URL: l.URL}):
		case resp.Request.URL.Scheme == "https" && strings.HasPrefix(l.URL, "http:"):
			r.Note(cmp.Or(r.d.RuleNames.HTTPS, "reader/https"), l.URL, "ignored an http list of an https site")
		default:
			found = append(found, kit.Resource{URL: l.URL})
		}
	}
	switch {
	case len(found) == 0:
		return nil, cost, fmt.Errorf("%s: TCT is not deployed at %s: its root has no Link with rel=index and type=%s: %w",
			r.d.Name, r.Root, mediaType, millrace.ErrNotFound)
	case len(found) > maxLists:
		return nil, cost, fmt.Errorf("%s: %s announces %d lists: %w", r.d.Name, r.Root, len(found), millrace.ErrTooLarge)
	}
	return found, cost, nil
}

// candidates returns the URLs at which a site-wide document may be: at the root, and in the folder
// of the endpoint.
func (r *tctReader) candidates(name string) []string {
	out := []string{strings.TrimSuffix(r.Root, "/") + name}
	path, _ := docname.CutQuery(r.Endpoint)
	if folder := path[:max(strings.LastIndexByte(path, '/'), 0)]; folder+"/" != r.Root {
		out = append(out, folder+name)
	}
	return out
}
