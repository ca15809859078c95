package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/millrace/millrace"
)

// The discovery document is announced by this relation, since the
// specification names none; its path is well known.
const (
	relation  = "openfeeder"
	mediaType = "application/json"
)

// discovery gives the discovery document (2). It is small, and its validator is
// of its bytes.
func (p *publisher) discovery(ctx context.Context, v millrace.View) (*millrace.Document, error) {
	site := v.Site()
	a := &about{Version: version, Contact: p.o.Contact, Capabilities: []string{}}
	a.Site.Name, a.Site.URL, a.Site.Language = valid(site.Title), site.Base, languageOf(site.Language)
	home, err := v.Page(ctx, millrace.Ref{URL: site.Base})
	switch {
	case err == nil:
		a.Site.Description = summarise(home.Description)
		a.Site.Language = languageOf(site.Language, home.Language)
	case !errors.Is(err, millrace.ErrNotFound):
		return nil, fmt.Errorf("%s: discovery: %w", Name, err)
	default: // the newest page speaks for the others
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
			if p.o.Embeddings {
				a.Capabilities = append(a.Capabilities, embeddingsCapability)
			}
		}
		a.Capabilities = append(a.Capabilities, realtimeCapability, diffSync)
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

// Announce says where the discovery document is: on the site's root, and in
// robots.txt in the words of section 11.
func (p *publisher) Announce(v millrace.View) millrace.Notice {
	link := millrace.Link{URL: path(v.Site(), discovery), Rel: relation, Type: mediaType, HTML: true}
	return millrace.Notice{
		Root:    []millrace.Link{link},
		Robots:  []string{"# OpenFeeder-compliant agents may use " + link.URL},
		Public:  []string{discovery},
		Entries: []millrace.Entry{{URL: strings.TrimSuffix(v.Site().Docs, "/") + discovery, Type: mediaType, Spec: source}},
	}
}
