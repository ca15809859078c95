package scp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
)

// Limits of the search for the SCP elements of a site.
const (
	maxSitemaps     = 16 // maximum number of sitemaps and indexes that are requested
	maxSitemapDepth = 3  // maximum depth of nested indexes
	maxChildren     = 1000
)

// found is a sitemap with SCP elements.
type found struct {
	URL string // requested URL
	fetch.Validators
	at    string // URL after redirects
	offer *offer // the SCP elements, or nil if not modified
	size  int64  // transferred bytes; set only during a probe
}

// errNoSCP is the error for a sitemap without SCP elements.
var errNoSCP = fmt.Errorf("no SCP elements: %w", millrace.ErrNotFound)

// candidate is a sitemap that may contain SCP elements.
type candidate struct {
	url   string
	depth int
}

// discover searches for the SCP elements of a site (Discovery via Sitemap). It tries
// /sitemap.xml, the sitemaps in robots.txt, and the sitemaps in indexes. It uses the first
// sitemap with SCP elements.
func (r *run) discover(ctx context.Context) (*found, error) {
	todo := []candidate{{url: r.Root + "sitemap.xml"}}
	trusted := []string{r.Root}
	asked := map[string]bool{}
	var broken error // first error of a sitemap that may have SCP elements
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
			// robots.txt authorizes sitemaps on other hosts (sitemaps.org, "Sitemaps & Cross
			// Submits").
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
	return nil, fmt.Errorf("%s: discovery at %s: no sitemap has SCP elements: %w", Name, r.Root, millrace.ErrNotFound)
}

// absent reports whether an error means that a sitemap contains no SCP elements. Other errors mean
// that the sitemap is invalid or unavailable.
func absent(err error) bool {
	if _, refused := errors.AsType[*fetch.AddressError](err); refused { // this client refuses the address
		return false
	}
	if _, refused := errors.AsType[*fetch.RobotsError](err); refused { // robots.txt disallows the request
		return false
	}
	return errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden)
}

// namedSitemaps returns the sitemaps in robots.txt. If robots.txt cannot be fetched, it returns no
// sitemaps, because a client that obeys robots.txt must then request nothing.
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
		down := kit.IsDowngrade(r.Root, u)
		if down {
			r.Note("security/sitemap-https", u, "skipped http sitemap of an https site")
		}
		return !down && !sitemap.IsOther(u)
	})
	return urls[:min(len(urls), maxSitemaps)], nil
}

// sitemap reads the SCP elements of one sitemap. With validators, the request is conditional. If
// fresh is set, the request bypasses all caches. If the sitemap contains no SCP elements, absent
// reports true for the error. If it is an index, children then contains the sitemaps that it lists.
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
			err = fmt.Errorf("%s: 304 for an unconditional request: %w", at, millrace.ErrInvalid)
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
	for e, err := range sitemap.Parse(body, &sitemap.Options{MaxEntries: math.MaxInt, Extension: namespace, Element: reader.element}) {
		if err != nil {
			err = remote(ctx, reader.broken(at, err))
		}
		if err != nil {
			return nil, nil, err
		}
		reader.after++
		if u, bad := canon.Resolve(final, e.URL); e.Sitemap && bad == nil && len(children) < maxChildren && !kit.IsDowngrade(r.Root, u) {
			children = append(children, u)
		}
	}
	// Reading to the end of the body detects truncation and a digest mismatch.
	if _, err := io.Copy(io.Discard, io.LimitReader(body, 1<<20)); err != nil {
		return nil, nil, fmt.Errorf("%s: sitemap: %w", Name, remote(ctx, err))
	}
	if f.offer = reader.offer(); len(f.offer.collections) == 0 {
		if reader.elements > 0 {
			return nil, nil, &millrace.FormatError{Protocol: Name, URL: at, Section: sectionDiscovery, Reason: "no readable collection in the sitemap", Err: reader.leftOut}
		}
		return nil, children, fmt.Errorf("%s: sitemap %s: %w", Name, at, errNoSCP)
	}
	return f, nil, nil
}

// body returns the content of a sitemap, or only its first bytes during a probe.
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
