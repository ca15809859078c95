package openfeeder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
)

// The specification defines no link relation for the discovery document, only a well-known path.
const (
	relation  = "openfeeder"
	mediaType = "application/json"
)

// discovery returns the discovery document (2). The document is small, and its ETag is a hash of
// its bytes.
func (p *publisher) discovery(ctx context.Context, v millrace.View) (*millrace.Document, error) {
	site := v.Site()
	a := &discoveryDocument{Version: version, Contact: p.o.Contact, Capabilities: []string{}}
	a.Site.Name, a.Site.URL, a.Site.Language = canon.ValidUTF8(site.Title), site.Base, languageOf(site.Language)
	home, err := v.Page(ctx, millrace.Ref{URL: cmp.Or(site.Home, "/")})
	switch {
	case err == nil:
		a.Site.Description = summarize(home.Description)
		a.Site.Language = languageOf(site.Language, home.Language)
	case !errors.Is(err, millrace.ErrNotFound):
		return nil, fmt.Errorf("%s: discovery: %w", Name, err)
	default: // use the language of the newest page
		for newest, err := range v.Scan(ctx, millrace.Scan{Order: millrace.ByPublished, Limit: 1}) {
			if err != nil {
				return nil, fmt.Errorf("%s: discovery: %w", Name, err)
			}
			a.Site.Language = languageOf(site.Language, newest.Language)
		}
	}
	a.Feed.Type, a.Feed.Endpoint = paginatedFeed, path(site, endpoint)
	if p.o.Static {
		a.Feed.Type, a.Feed.Endpoint = staticFeed, path(site, staticIndex(0))
	} else {
		if _, ok := v.(millrace.Searcher); ok {
			a.Capabilities = append(a.Capabilities, searchCapability)
			if p.own.Embeddings {
				a.Capabilities = append(a.Capabilities, embeddingsCapability)
			}
		}
		a.Capabilities = append(a.Capabilities, realtimeCapability)
		if !site.Volatile {
			a.Capabilities = append(a.Capabilities, diffSync)
		}
		a.Events = &eventSource{Endpoint: path(site, eventsPath), Type: eventStream}
	}
	if p.o.Auth {
		a.Capabilities = append(a.Capabilities, authCapability)
	}
	body := a.encode()
	d := p.document(discovery, etag("discovery", string(body)))
	d.Public = true
	d.Write = func(_ context.Context, w io.Writer) error {
		_, err := w.Write(body)
		return err
	}
	return d, nil
}

// Advertise returns a link from the site's root to the discovery document, and the comment of
// section 11 for robots.txt.
func (p *publisher) Advertise(v millrace.View) millrace.Advertisement {
	link := millrace.Link{URL: path(v.Site(), discovery), Rel: relation, Type: mediaType, HTML: true}
	return millrace.Advertisement{
		Root:    []millrace.Link{link},
		Robots:  []string{"# " + permission + " " + link.URL},
		Allow:   []string{discovery, endpoint},
		Public:  []string{discovery},
		Entries: []millrace.Entry{{URL: strings.TrimSuffix(v.Site().EndpointBase, "/") + discovery, Type: mediaType, Spec: source}},
	}
}

// permission is the beginning of the comment in robots.txt that allows clients to use a discovery
// document and its endpoint even if rules disallow them (11).
const permission = "OpenFeeder-compliant agents may use"

// permits returns the path of the discovery document that a comment in robots.txt permits, or "".
func permits(robots *fetch.Robots) string {
	for _, comment := range robots.Comments() {
		if len(comment) < len(permission) || !strings.EqualFold(comment[:len(permission)], permission) {
			continue
		}
		if words := strings.Fields(comment[len(permission):]); len(words) > 0 {
			if u, err := url.Parse(strings.TrimRight(words[0], ".,")); err == nil && strings.HasPrefix(u.Path, "/") {
				return u.Path
			}
		}
	}
	return ""
}

// covers reports whether the permission for a discovery document includes a URL. The permission
// includes the document, the endpoint and the URLs below it, and the files of a static feed, whose
// names start with that of the endpoint.
func (f *feed) covers(document string, u *url.URL) bool {
	if document == "" || u.Path == document {
		return document != ""
	}
	end, err := url.Parse(f.Endpoint)
	if err != nil || !kit.SameOrigin(f.Endpoint, u.String()) {
		return false
	}
	rest, ok := strings.CutPrefix(u.Path, strings.TrimSuffix(end.Path, staticEnd))
	return u.Path == end.Path || ok && (strings.HasPrefix(rest, "/") || f.Static && strings.HasPrefix(rest, "-"))
}

// permitted reports whether a comment in robots.txt permits a URL that its rules disallow.
func (r *reader) permitted(ctx context.Context, u *url.URL) bool {
	robots, err := fetch.RobotsOf(ctx, r.Client, u)
	r.mu.Lock()
	defer r.mu.Unlock()
	return err == nil && r.feed.covers(permits(robots), u)
}
