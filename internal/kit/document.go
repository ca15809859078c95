package kit

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
)

// Resource is a URL with the verbatim validators of the state that was read. It is part of
// cursors.
type Resource struct {
	URL string `json:"url"`
	fetch.Validators
}

// Conditional reports whether the resource has validators.
func (r Resource) Conditional() bool { return r.Validators != fetch.Validators{} }

// Open sends a GET as [Reader.Get] does. A response without the resource, such as a
// 304 or a 404, is an error. what names the resource in errors, such as "list".
func (r *Reader) Open(ctx context.Context, what, target, accept string, v fetch.Validators) (*http.Response, error) {
	resp, err := r.Get(ctx, target, accept, v)
	if err == nil {
		if err = fetch.CheckStatus(resp); err == nil {
			return resp, nil
		}
		_ = resp.Body.Close()
	}
	return nil, fmt.Errorf("%s: %s: %w", r.Name, what, err)
}

// Read calls [Reader.Open], reads at most limit bytes of content, and closes the body of the
// response.
func (r *Reader) Read(ctx context.Context, what, target, accept string, v fetch.Validators, limit int64) ([]byte, *http.Response, error) {
	resp, err := r.Open(ctx, what, target, accept, v)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := fetch.ReadBody(resp, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", r.Name, what, err)
	}
	return body, resp, nil
}

// SizeRatio returns the ratio of a document's size to the size of its beginning. If it is unknown, the
// ratio is 1 and unending is true.
func SizeRatio(b *fetch.Beginning) (times float64, unending bool) {
	switch {
	case b.Complete:
		return 1, false
	case b.Size < 0 || b.Read == 0:
		return 1, true
	}
	return float64(b.Size) / float64(b.Read), false
}

// ProbeSample returns at most three elements of a list to probe: one in the middle, the first
// and the last.
func ProbeSample[T any](list []T) []T {
	if n := len(list); n > 0 {
		return []T{list[n/2], list[0], list[n-1]}[:min(n, 3)]
	}
	return nil
}

// Download returns a context for fetching a list of all pages, which may have limit bytes and
// take longer than other documents.
func Download(ctx context.Context, limit int64) context.Context {
	return fetch.Download(ctx, limit, 15*time.Minute)
}

// HTMLTypes is the Accept field of a request for a page.
const HTMLTypes = "text/html, */*;q=0.1"

// ReadHead returns the links of a response, first those of its Link fields, then those of its
// HTML, and the rest of the HTML's head.
func ReadHead(resp *http.Response) (weblink.Head, error) {
	var body io.ReadCloser
	if weblink.IsHTML(resp.Header) {
		var err error
		if body, err = fetch.Decode(resp); err != nil {
			return weblink.Head{}, err
		}
		defer body.Close()
	}
	return headOf(resp.Header, resp.Request.URL, body), nil
}

// headOf parses the Link fields and the HTML. body is nil if there is no HTML.
func headOf(h http.Header, base *url.URL, body io.Reader) weblink.Head {
	out := weblink.Head{Base: base}
	if body != nil {
		out = weblink.HTML(body, base)
	}
	out.Links = append(weblink.Header(h, base), out.Links...)
	return out
}

// Sitemaps returns the distinct canonical URLs of the sitemaps that a robots.txt names, if
// keep accepts them.
func Sitemaps(robots *fetch.Robots, root string, keep func(u string) bool) (urls []string) {
	base, err := url.Parse(root)
	if err != nil {
		return nil
	}
	for _, ref := range robots.Sitemaps() {
		if u, err := canon.Resolve(base, ref); err == nil && !slices.Contains(urls, u) && keep(u) {
			urls = append(urls, u)
		}
	}
	return urls
}

// Varies reports whether Vary includes a field or "*".
func Varies(h http.Header, field string) bool {
	for name := range strings.SplitSeq(strings.Join(h.Values("Vary"), ","), ",") {
		if name = strings.TrimSpace(name); name == "*" || strings.EqualFold(name, field) {
			return true
		}
	}
	return false
}

// IsDowngrade reports whether a redirect between two canonical URLs leads from https to http.
func IsDowngrade(from, to string) bool {
	return strings.HasPrefix(from, "https:") && strings.HasPrefix(to, "http:")
}
