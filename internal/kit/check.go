package kit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
)

// Rule returns the function that builds the rules of a protocol. see runs once per site, and
// the rules share its result.
func Rule[S any](name string, see func(ctx context.Context, t *check.Target) (S, error)) func(section, word string, level check.Level, sentence string, f check.SiteCheck[S]) check.Rule {
	shared := check.RuleBuilder[S]{Name: name, SiteContext: see}
	return func(section, word string, level check.Level, sentence string, f check.SiteCheck[S]) check.Rule {
		return shared.Rule(section+"/"+word, level, section, sentence, f)
	}
}

// On returns a check that runs f on one part of a site, unless that part is nil.
func On[S, T any](of func(S) *T, f func(t *T, fail check.Fail)) check.SiteCheck[S] {
	return func(_ context.Context, s S, fail check.Fail) error {
		t := of(s)
		if t == nil {
			return check.ErrNotApplicable
		}
		f(t, fail)
		return nil
	}
}

// SiteContext is the data about a site that the rules of all protocols share.
type SiteContext struct {
	*check.Target
	Hosts []string // known hosts of the site
}

// NewSiteContext returns the context of a target's site. Its hosts are those of the site's root, of
// the target and of the other URLs.
func NewSiteContext(t *check.Target, urls ...string) SiteContext {
	s := SiteContext{Target: t}
	s.AddHosts(append(urls, t.Root(), t.Site())...)
	return s
}

// AddHosts adds the hosts of URLs.
func (s *SiteContext) AddHosts(urls ...string) {
	for _, u := range urls {
		s.Hosts = append(s.Hosts, check.HostOf(u))
	}
}

// HasHost reports whether a URL is on a host of the site. The checker sends requests to no other
// host, whatever a list names.
func (s *SiteContext) HasHost(u string) bool { return slices.Contains(s.Hosts, check.HostOf(u)) }

// IsLoopback reports whether the host of a URL is this machine. Such a URL needs no https,
// because the connection does not leave the machine.
func IsLoopback(u string) bool {
	p, err := url.Parse(u)
	return err == nil && fetch.IsLoopback(p.Hostname())
}

// At returns the URL of a path of the site, such as "/robots.txt".
func (s *SiteContext) At(path string) string { return strings.TrimSuffix(s.Root(), "/") + path }

// Document fetches an optional document of the site. If it is absent, resp is nil and why
// describes the response. An error does not mean that the site violates a rule.
func (s *SiteContext) Document(ctx context.Context, u string) (resp *check.Response, why string, err error) {
	resp, err = s.Get(ctx, u)
	switch {
	case check.IsInconclusive(err), ctx.Err() != nil:
		return nil, "", cmp.Or(err, ctx.Err())
	case err != nil:
		return nil, err.Error(), nil //nolint:nilerr // why contains the error
	case resp.Status != http.StatusOK:
		return nil, resp.StatusText(), nil
	case resp.BodyErr != nil:
		return nil, resp.BodyErr.Error(), nil //nolint:nilerr // why contains the error
	}
	return resp, "", nil
}

// Robots returns the robots.txt of the site, or nil if it is absent.
func (s *SiteContext) Robots(ctx context.Context) (*check.Response, *fetch.Robots, error) {
	resp, _, err := s.Document(ctx, s.At("/robots.txt"))
	if resp == nil || LooksHTML(resp.Body) {
		return nil, nil, err
	}
	return resp, fetch.ParseRobots(resp.Body, "millrace"), nil
}

// LooksHTML reports whether a body looks like HTML, whatever its media type.
func LooksHTML(body []byte) bool {
	head := strings.ToLower(strings.TrimSpace(string(body[:min(len(body), 256)])))
	return strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html")
}

// HeadOf is [ReadHead] for a response of the site under test.
func HeadOf(r *check.Response) weblink.Head {
	base, err := url.Parse(r.URL)
	if err != nil {
		return weblink.Head{}
	}
	if !weblink.IsHTML(r.Header) {
		return headOf(r.Header, base, nil)
	}
	return headOf(r.Header, base, bytes.NewReader(r.Body))
}

// MediaType checks the media type of the document at a URL.
func MediaType(u string, r *check.Response, want string, fail check.Fail) {
	got := r.Header.Get("Content-Type")
	if mt, _, err := mime.ParseMediaType(got); err != nil || mt != want {
		fail(u, "Content-Type: "+got, "Content-Type: "+want)
	}
}

// Links returns the links of a 2xx response: those of its Link fields, then those of its HTML.
func Links(r *check.Response) []weblink.Link {
	if r.Status < 200 || r.Status > 299 {
		return nil
	}
	return HeadOf(r).Links
}

// FieldLinks returns the links of the Link fields only.
func FieldLinks(r *check.Response) []weblink.Link {
	return Links(&check.Response{URL: r.URL, Status: r.Status, Header: http.Header{"Link": r.Header["Link"]}})
}

// Directives returns the directives of Cache-Control in lower case, or nil if there are none.
func Directives(r *check.Response) (all map[string]string) {
	for d := range strings.SplitSeq(strings.ToLower(r.Field("Cache-Control")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		if name != "" && all == nil {
			all = map[string]string{}
		}
		if name != "" {
			all[name] = strings.Trim(value, `"`)
		}
	}
	return all
}

// Short shortens a received text for a message.
func Short(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}

// ShortJSON formats a JSON value for a message.
func ShortJSON(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	return Short(string(raw))
}

// Object returns the members of a JSON object, or nil for anything else.
func Object(raw []byte) (m map[string]json.RawMessage) {
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// Text returns the value of a JSON string, or "" for anything else.
func Text(raw json.RawMessage) string {
	s, _ := check.JSONText(raw)
	return s
}

// TrimBOM returns JSON without a byte order mark.
func TrimBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\uFEFF")) }

// Array returns the elements of a JSON array, or nil for anything else.
func Array(raw []byte) (a []json.RawMessage) {
	if json.Unmarshal(raw, &a) != nil {
		return nil
	}
	return a
}
