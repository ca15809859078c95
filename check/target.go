package check

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Target is the site under test. It caches responses so that rules share requests. It is not safe
// for concurrent use.
type Target struct {
	site   *url.URL
	client http.Client
	now    func() time.Time
	decode func(*http.Response) (io.ReadCloser, error)

	sample    int
	keyed     bool
	elsewhere func(url string) bool
	maxBody   int64
	sent      int // number of requests sent, redirects included
	limit     int // maximum number of requests

	answers     map[string]answer
	memo        map[string]any
	bodies      map[[sha256.Size]byte][]byte // each distinct body once, by its hash
	memoryBytes int64                        // bytes in bodies
	over        error                        // error of the first limit that was reached
}

// TargetOptions configures a [Target]. The zero value is valid.
type TargetOptions struct {
	Sample      int   // number of pages of a site to check; 0 means 10
	MaxRequests int   // maximum number of requests, redirects included; 0 means 1,000
	MaxBody     int64 // maximum size of a body, coded and decoded; 0 means 32 MiB; all bodies together may take twice that
	Keyed       bool  // the client sends an API key, so responses may be private
	// OnOtherServer reports whether a server other than the one under test serves the URL of a
	// page. Such pages are not checked. If nil, the server under test serves every page.
	OnOtherServer func(url string) bool
	// Decode removes the content codings of a response. If nil, only gzip is supported.
	Decode func(*http.Response) (io.ReadCloser, error)
	Now    func() time.Time // current time; if nil, time.Now
}

// NewTarget returns the target for one site. client sends the requests; its settings for redirects,
// limits, delays and address checks apply. NewTarget returns an error unless the URL is absolute,
// has the scheme http or https, and contains no credentials.
func NewTarget(site string, client *http.Client, o *TargetOptions) (*Target, error) {
	if o == nil {
		o = new(TargetOptions)
	}
	u, err := url.Parse(strings.TrimSpace(site))
	switch {
	case err != nil:
		return nil, fmt.Errorf("check %q: %w", site, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("check %q: not an absolute http or https URL", site)
	case u.User != nil:
		return nil, fmt.Errorf("check %s: the URL contains credentials", u.Redacted())
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	t := &Target{
		site: u, now: o.Now, decode: o.Decode,
		sample: cmp.Or(o.Sample, 10), keyed: o.Keyed, elsewhere: o.OnOtherServer, maxBody: cmp.Or(o.MaxBody, 32<<20), limit: cmp.Or(o.MaxRequests, 1000),
		answers: map[string]answer{}, memo: map[string]any{}, bodies: map[[sha256.Size]byte][]byte{},
	}
	if t.now == nil {
		t.now = time.Now
	}
	if t.decode == nil {
		t.decode = gunzip
	}
	t.client = *client
	t.client.Transport = counter{t, client.Transport}
	return t, nil
}

// Site returns the URL of the site, without a fragment.
func (t *Target) Site() string { return t.site.String() }

// Root returns the root URL of the origin, such as "https://example.com/".
func (t *Target) Root() string {
	return (&url.URL{Scheme: t.site.Scheme, Host: t.site.Host, Path: "/"}).String()
}

// Now returns the time of the target's clock.
func (t *Target) Now() time.Time { return t.now() }

// OnOtherServer reports whether another server serves the URL of a page. Such a page is not
// checked.
func (t *Target) OnOtherServer(url string) bool { return t.elsewhere != nil && t.elsewhere(url) }

// Requests returns the number of requests sent, redirects included.
func (t *Target) Requests() int { return t.sent }

// Restricted reports whether a response may be restricted to holders of a key: the client sent a
// key, and shared caches may not store the response.
func (t *Target) Restricted(r *Response) bool {
	return t.keyed && strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Cache-Control"), ",")), "private")
}

// Response is a response with its body.
type Response struct {
	URL     string // URL after redirects
	TLS     bool   // the response came over https
	Status  int
	Header  http.Header
	Coded   []byte // the body as sent
	CutErr  error  // why Coded is incomplete, such as [ErrLimit]; nil if it is complete
	Body    []byte // the body without its content codings; nil if BodyErr is set
	BodyErr error  // why the body could not be read or decoded; nil if there was no error
}

type answer struct {
	resp *Response
	err  error
}

// Do sends a request and reads the response. If an equal request was sent earlier, Do returns the
// cached response. Do follows redirects as the client does. If the header has no Accept-Encoding,
// Do requests an uncompressed response, so that Body is what the server's application wrote. The
// response is shared and must not be changed.
//
// If no response arrives, Do returns the client's error. It returns [ErrLimit] when the limit on
// requests or on memory for bodies is reached, and [ErrBusy] for status 429 or 503. No other status
// code is an error.
func (t *Target) Do(ctx context.Context, method, url string, header http.Header) (*Response, error) {
	key := requestKey(method, url, header)
	if a, ok := t.answers[key]; ok {
		return a.resp, a.err
	}
	resp, err := t.DoUncached(ctx, method, url, header)
	if ctx.Err() == nil {
		t.answers[key] = answer{resp, err}
	}
	return resp, err
}

// Get is like [Target.Do] with the method GET and without additional header fields.
func (t *Target) Get(ctx context.Context, url string) (*Response, error) {
	return t.Do(ctx, http.MethodGet, url, nil)
}

// DoUncached is like [Target.Do], but does not use the cache.
func (t *Target) DoUncached(ctx context.Context, method, url string, header http.Header) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header.Clone())
	if req.Header.Get("Accept-Encoding") == "" {
		// With an explicit value, net/http does not decompress the body.
		req.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s responds with status %d: %w", resp.Request.URL, resp.StatusCode, ErrBusy)
	}
	out := &Response{
		URL: resp.Request.URL.String(), TLS: resp.Request.URL.Scheme == "https",
		Status: resp.StatusCode, Header: resp.Header,
	}
	out.Coded, out.CutErr = t.read(resp.Body)
	out.BodyErr = out.CutErr
	_ = resp.Body.Close() // the body has been read, so this error does not matter
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if out.BodyErr == nil {
		out.Body, out.BodyErr = t.decoded(resp, out.Coded)
	}
	for _, b := range []*[]byte{&out.Coded, &out.Body} {
		if err := t.keep(b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (t *Target) decoded(resp *http.Response, coded []byte) ([]byte, error) {
	if len(coded) == 0 {
		return nil, nil
	}
	again := *resp
	again.Body = io.NopCloser(bytes.NewReader(coded))
	r, err := t.decode(&again)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body, err := t.read(r)
	if err != nil {
		return nil, err
	}
	return body, nil
}

func (t *Target) read(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, t.maxBody+1))
	if err == nil && int64(len(b)) > t.maxBody {
		err = t.ends("a body of more than %d bytes", t.maxBody)
	}
	return b, err
}

// ends records that a limit was reached, which makes the check inconclusive, and returns the error
// for this limit.
func (t *Target) ends(format string, args ...any) error {
	err := fmt.Errorf("%w: "+format, append([]any{ErrLimit}, args...)...)
	t.over = cmp.Or(t.over, err)
	return err
}

// keep stores a body, and shares the memory of equal bodies. It fails if all bodies together exceed
// the limit.
func (t *Target) keep(b *[]byte) error {
	sum := sha256.Sum256(*b)
	if same, ok := t.bodies[sum]; ok {
		*b = same
		return nil
	}
	if t.memoryBytes += int64(len(*b)); t.memoryBytes/2 > t.maxBody {
		return t.ends("%d bytes of bodies in memory", t.memoryBytes)
	}
	t.bodies[sum] = *b
	return nil
}

// gunzip decodes gzip. It is the default decoder.
func gunzip(resp *http.Response) (io.ReadCloser, error) {
	switch coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ","))); coding {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(resp.Body)
	default:
		return nil, fmt.Errorf("content coding %q: %w", coding, errors.ErrUnsupported)
	}
}

// Memo returns the result of the first call of f for the key. Rules of a protocol use it to
// share results, such as discovery. Keys start with the protocol's name. Errors are cached
// too, unless the context has ended.
func Memo[T any](ctx context.Context, t *Target, key string, f func(ctx context.Context) (T, error)) (T, error) {
	type entry struct {
		value T
		err   error
	}
	if e, ok := t.memo[key].(entry); ok {
		return e.value, e.err
	}
	value, err := f(ctx)
	if ctx.Err() == nil {
		t.memo[key] = entry{value, err}
	}
	return value, err
}

// Sample returns at most TargetOptions.Sample elements of a list, spread evenly from the first to
// the last. The same list always results in the same sample.
func Sample[T any](t *Target, list []T) []T {
	n := t.sample
	if len(list) <= n {
		return list
	}
	out := make([]T, 0, n)
	for i := range n {
		out = append(out, list[i*(len(list)-1)/max(n-1, 1)])
	}
	return out
}

// counter counts the requests of the client, and refuses further requests at the target's limit.
type counter struct {
	t    *Target
	next http.RoundTripper
}

func (c counter) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.t.sent >= c.t.limit {
		return nil, c.t.ends("%d requests", c.t.sent)
	}
	c.t.sent++
	if c.next == nil {
		return http.DefaultTransport.RoundTrip(req)
	}
	return c.next.RoundTrip(req)
}

func requestKey(method, url string, header http.Header) string {
	var b strings.Builder
	b.WriteString(method + " " + url)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, v := range header[name] {
			b.WriteString("\n" + name + ": " + v)
		}
	}
	return b.String()
}
