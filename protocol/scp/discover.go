package scp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/protocol/kit"
)

// The bounds of the search for a site's SCP elements.
const (
	maxSitemaps     = 16 // sitemaps and indexes that are asked for
	maxSitemapDepth = 3  // indexes inside each other
	maxChildren     = 1000
)

// found is a sitemap with SCP elements.
type found struct {
	URL string // as it is asked for
	fetch.Validators
	at    string // where it was, after redirects
	offer *offer // nil: it has not changed
	size  int64  // bytes as they are sent, of one that is only looked at
}

// errNoSCP is a sitemap without a word of SCP.
var errNoSCP = fmt.Errorf("it has no elements of SCP: %w", millrace.ErrNotFound)

// candidate is a sitemap that may have the SCP elements.
type candidate struct {
	url   string
	depth int
}

// discover looks for the SCP elements of a site (Discovery via Sitemap): in
// /sitemap.xml, in the sitemaps that robots.txt names, and in those that they
// name if they are indexes. The first sitemap that has them counts.
func (r *run) discover(ctx context.Context) (*found, error) {
	todo := []candidate{{url: r.Root + "sitemap.xml"}}
	trusted := []string{r.Root}
	asked := map[string]bool{}
	var broken error // why there may be one all the same
	for i := 0; i < len(todo) && len(asked) < maxSitemaps; i++ {
		c := todo[i]
		if !asked[c.url] {
			asked[c.url] = true
			f, children, err := r.sitemap(ctx, c.url, fetch.Validators{}, false)
			switch {
			case err == nil:
				return f, nil
			case fatal(ctx, err):
				return nil, err
			case !absent(err):
				broken = cmp.Or(broken, err)
			}
			for _, u := range children {
				if c.depth+1 < maxSitemapDepth && slices.ContainsFunc(append(trusted, c.url), func(t string) bool { return kit.SameOrigin(t, u) }) {
					todo = append(todo, candidate{u, c.depth + 1})
				}
			}
		}
		if i == 0 {
			// robots.txt vouches for sitemaps of other hosts (sitemaps.org,
			// "Sitemaps & Cross Submits").
			named, err := r.namedSitemaps(ctx)
			if err != nil {
				return nil, err
			}
			trusted = append(trusted, named...)
			front := make([]candidate, 0, len(named)+len(todo))
			front = append(front, todo[0])
			for _, u := range named {
				front = append(front, candidate{url: u})
			}
			todo = append(front, todo[1:]...)
		}
	}
	if broken != nil {
		return nil, fmt.Errorf("%s: discovery: %w", Name, broken)
	}
	return nil, fmt.Errorf("%s: SCP is not deployed at %s: none of its sitemaps has the elements: %w", Name, r.Root, millrace.ErrNotFound)
}

// absent reports whether an error of a sitemap says that there is no SCP,
// rather than that it is broken or out of reach.
func absent(err error) bool {
	if _, refused := errors.AsType[*fetch.AddressError](err); refused { // by this side
		return false
	}
	if _, refused := errors.AsType[*fetch.RobotsError](err); refused { // it was not asked for
		return false
	}
	return errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden)
}

// namedSitemaps returns the sitemaps that robots.txt names. If robots.txt cannot
// be fetched, there are none: a client that obeys it may not request anything.
func (r *run) namedSitemaps(ctx context.Context) (urls []string, err error) {
	root, err := url.Parse(r.Root)
	if err != nil {
		return nil, err
	}
	robots, err := fetch.RobotsOf(ctx, r.Client, root)
	if err != nil {
		return nil, ctx.Err()
	}
	urls = kit.Sitemaps(robots, r.Root, func(u string) bool {
		down := kit.Downgrade(r.Root, u)
		if down {
			r.Note("security/sitemap-https", u, "an http sitemap of an https site is not read")
		}
		return !down && !sitemap.IsOther(u)
	})
	return urls[:min(len(urls), maxSitemaps)], nil
}

// sitemap reads one sitemap for its SCP elements. With validators it asks
// conditionally; fresh asks past all caches. Without the elements it gives the
// sitemaps that an index names, and an error that is absent.
func (r *run) sitemap(ctx context.Context, at string, have fetch.Validators, fresh bool) (_ *found, children []string, err error) {
	header := http.Header{"Accept": {"application/xml, text/xml, */*;q=0.5"}}
	if fresh {
		header.Set("Cache-Control", "no-cache")
	}
	have.Set(header)
	resp, err := r.get(ctx, at, header)
	if r.probeCost != nil {
		r.probeCost.Requests++
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: sitemap: %w", Name, err)
	}
	defer resp.Body.Close()
	final := resp.Request.URL
	f := &found{URL: at, Validators: have, at: final.String()}
	if resp.StatusCode == http.StatusNotModified && have != (fetch.Validators{}) {
		return f, nil, nil
	}
	if err := fetch.CheckStatus(resp); err != nil {
		if errors.Is(err, millrace.ErrUnmodified) {
			err = fmt.Errorf("%s: 304 for a request without a condition: %w", at, millrace.ErrInvalid)
		}
		return nil, nil, fmt.Errorf("%s: sitemap: %w", Name, err)
	}
	f.Validators = fetch.ValidatorsOf(resp)
	body, err := r.body(resp, f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: sitemap: %w", Name, err)
	}
	defer body.Close()
	reader := &offerReader{run: r, base: final}
	for e, err := range sitemap.Parse(body, &sitemap.Options{MaxEntries: 1 << 40, Extension: namespace, Element: reader.element}) {
		if err != nil {
			err = remote(ctx, reader.broken(at, err))
		}
		if err != nil {
			return nil, nil, err
		}
		reader.after++
		if u, bad := canon.Resolve(final, e.URL); e.Sitemap && bad == nil && len(children) < maxChildren && !kit.Downgrade(r.Root, u) {
			children = append(children, u)
		}
	}
	// Only the end of the body says that it was whole, and as its digest says.
	if _, err := io.Copy(io.Discard, io.LimitReader(body, 1<<20)); err != nil {
		return nil, nil, fmt.Errorf("%s: sitemap: %w", Name, remote(ctx, err))
	}
	if f.offer = reader.offer(); len(f.offer.collections) == 0 {
		if reader.elements > 0 {
			return nil, nil, &millrace.FormatError{Protocol: Name, URL: at, Section: sectionDiscovery, Reason: "it names no collection that can be read", Err: reader.leftOut}
		}
		return nil, children, fmt.Errorf("%s: sitemap %s: %w", Name, at, errNoSCP)
	}
	return f, nil, nil
}

// body gives the content of a sitemap, or how it begins if that is enough.
func (r *run) body(resp *http.Response, f *found) (io.ReadCloser, error) {
	if r.probeCost == nil {
		return fetch.Decode(resp)
	}
	b, err := fetch.ReadBeginning(resp, probeBytes)
	if err != nil {
		return nil, err
	}
	f.size = max(b.Size, b.Read)
	r.probeCost.Bytes += f.size
	return io.NopCloser(bytes.NewReader(b.Content)), nil
}
