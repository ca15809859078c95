package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// feed is the result of discovery.
type feed struct {
	Endpoint string `json:"endpoint"`         // absolute canonical URL
	Base     string `json:"base"`             // base of relative page URLs, absolute and canonical
	Home     string `json:"home"`             // origin of the site after redirects; pages are on it or on the requested origin
	Alias    string `json:"alias,omitempty"`  // origin of site.url, if it is an alias of Home, or ""
	Static   bool   `json:"static,omitempty"` // the server ignores parameters
}

// maxPointers is the maximum number of the root's link targets that are tried.
const maxPointers = 4

// errNone is the error for a site without OpenFeeder.
var errNone = fmt.Errorf("no OpenFeeder discovery document or endpoint: %w", millrace.ErrNotFound)

// discover finds the feed of the site. It tries the well-known document (2), and then the links of
// the root to a discovery document or to an endpoint. If the root has the version header (9) and no
// link, discover tries the recommended endpoint (3).
func (r *reader) discover(ctx context.Context) (feed, error) {
	f, err := r.readDiscovery(ctx, r.Root+discovery[1:])
	if err == nil {
		return f, nil
	}
	if ctx.Err() != nil || !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrInvalid) {
		return feed{}, fmt.Errorf("%s: discovery: %w", Name, err)
	}
	first := err
	targets, err := r.pointers(ctx)
	if err != nil {
		if ctx.Err() != nil || errors.Is(first, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrNotFound) {
			return feed{}, fmt.Errorf("%s: discovery: %w", Name, err)
		}
		targets = nil
	}
	for _, target := range targets {
		f, err := r.readDiscovery(ctx, target)
		if err == nil {
			return f, nil
		}
		if ctx.Err() != nil {
			return feed{}, fmt.Errorf("%s: discovery: %w", Name, err)
		}
		f = feed{Endpoint: target, Base: r.Root, Home: r.Root}
		if _, err = r.index(ctx, f, 1); err == nil {
			return f, nil
		}
	}
	if errors.Is(first, millrace.ErrNotFound) {
		first = fmt.Errorf("%s: %w", r.Root, errNone)
	}
	return feed{}, fmt.Errorf("%s: discovery: %w", Name, first)
}

// readDiscovery reads a discovery document (2.1).
func (r *reader) readDiscovery(ctx context.Context, target string) (feed, error) {
	head, body, err := r.get(ctx, target, "")
	if err != nil {
		return feed{}, err
	}
	at := head.url
	if mt, _, err := mime.ParseMediaType(head.header.Get("Content-Type")); err != nil || mt != mediaType {
		r.Note("2/content-type", target, "Content-Type is "+kit.Short(head.header.Get("Content-Type")))
	}
	a, err := decodeAbout(body)
	if err != nil {
		return feed{}, kit.FormatURL(err, target)
	}
	if major, _, _ := strings.Cut(a.Version, "."); major != "1" {
		return feed{}, fmt.Errorf("%s: OpenFeeder %s is not supported: %w", target, kit.Short(a.Version), millrace.Coded("unknown-version", millrace.ErrUnavailable))
	}
	f := feed{Base: r.Root, Home: r.Root, Static: a.Feed.Type == staticFeed}
	if final, err := canon.URL(at.String()); err == nil {
		f.Home = canon.Origin(final) + "/"
	}
	if err := f.setBase(r.Root, a.Site.URL); err != nil {
		r.Note("2.1/site-url", target, "site.url is "+kit.Short(a.Site.URL))
	} else if f.Alias != "" {
		r.Note("2.1/site-origin", target, "site.url is "+kit.Short(a.Site.URL)+", but the feed is at "+f.Home)
	}
	if err := f.locate(at, a.Feed.Endpoint); err != nil {
		return f, kit.FormatURL(err, target)
	}
	r.remember(f)
	return f, nil
}

// locate sets Endpoint from the feed.endpoint of a discovery document at a URL. If the endpoint of
// an https site is http, locate rejects it, unless it is on Alias: then locate uses the same path
// on Home.
func (f *feed) locate(at *url.URL, ref string) (err error) {
	if f.Endpoint, err = canon.Resolve(at, ref); err != nil {
		return &millrace.FormatError{Protocol: Name, Position: "/feed/endpoint", Section: "2.1", Reason: "no URL", Err: err}
	}
	if kit.IsDowngrade(f.Home, f.Endpoint) {
		if !kit.SameOrigin(f.Alias, f.Endpoint) {
			return &millrace.FormatError{Protocol: Name, Position: "/feed/endpoint", Section: "2.1", Reason: "http URL on an https site", Err: millrace.ErrForbidden}
		}
		f.Endpoint = canon.Origin(f.Home) + targetOf(f.Endpoint)
	}
	return nil
}

// setBase sets Base and Alias from the site.url of the discovery document. An origin other than
// root and Home, such as www or the origin behind a proxy, is an alias of Home. Relative URLs are
// resolved against Home, and so are the paths of URLs on the alias. Thus the feed loses no page,
// and claims no page of another site. If siteURL is not a URL, setBase returns an error.
func (f *feed) setBase(root, siteURL string) error {
	base, err := canon.URL(siteURL)
	switch {
	case err != nil:
		f.Base = root
	case kit.SameOrigin(base, root), kit.SameOrigin(base, f.Home):
		f.Base = base
	default:
		f.Base, f.Alias = f.Home, canon.Origin(base)
	}
	return err
}

// url resolves the URL of a page in the feed. The page must be on the requested origin or on Home.
func (f *feed) url(root, ref string) (string, error) {
	base, err := url.Parse(f.Base)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	u, err := canon.Resolve(base, ref)
	if err != nil || ref == "" {
		return "", &millrace.FormatError{Protocol: Name, Section: "3.3", Reason: "not a URL: " + quote(ref), Err: err}
	}
	if f.Alias != "" && kit.SameOrigin(f.Alias, u) {
		u = canon.Origin(f.Home) + targetOf(u)
	}
	if !kit.SameOrigin(f.Home, u) && !kit.SameOrigin(root, u) {
		return "", &millrace.FormatError{Protocol: Name, Section: "3.3", Reason: "the page does not belong to the site, " + root}
	}
	return u, nil
}

// pointers returns the URLs to which the root links as OpenFeeder: in Link fields, link elements
// and meta elements. If there are no links, but the root has the version header (9), it returns the
// recommended endpoint.
func (r *reader) pointers(ctx context.Context) ([]string, error) {
	resp, err := r.ask(ctx, r.Root, fetch.Validators{}, kit.HTMLTypes)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, err
	}
	head, err := kit.ReadHead(resp)
	if err != nil {
		return nil, err
	}
	found := targets(head)
	if len(found) == 0 && resp.Header.Get(versionHead) != "" {
		found = append(found, r.Root+endpoint[1:])
	}
	var out []string
	for _, u := range found {
		switch {
		case slices.Contains(out, u) || len(out) == maxPointers:
		case kit.IsDowngrade(r.Root, u):
			r.Note("reader/https", u, "skipped http URL on an https site")
		default:
			out = append(out, u)
		}
	}
	return out, nil
}

// targets returns the targets of links to OpenFeeder: links with the relation "openfeeder",
// alternates with the title "openfeeder", and meta elements with the name "openfeeder".
func targets(head weblink.Head) []string {
	var out []string
	for _, l := range head.Links {
		if l.Is(relation, "") || l.Is("alternate", "") && strings.EqualFold(l.Title, relation) {
			out = append(out, l.URL)
		}
	}
	for _, m := range head.Metas {
		if m.Name != relation || m.Content == "" {
			continue
		}
		if u, err := canon.Resolve(head.Base, m.Content); err == nil {
			out = append(out, u)
		}
	}
	return out
}
