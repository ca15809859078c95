package analytics

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// The kinds of receivers.
const (
	Umami     = "umami"
	GA4       = "ga4"
	Plausible = "plausible"
	Webhook   = "webhook"
)

// receiver is what is known of a kind of receivers.
type receiver struct {
	endpoint string   // the path of its API; "" = the URL is one
	params   []string // what a target says in its query, all of it necessary
	secret   []string // the confidential ones, which may change
	window   int      // events that are read at once
	together int      // most of them in one request
	byBot    bool     // a request is about one bot
	// maxAge is how old an event may be, because the receiver cannot be told
	// of another time; 0 = of any age.
	maxAge time.Duration
}

var receivers = map[string]receiver{
	Umami:     {endpoint: "/api/send", params: []string{"website"}, window: 256, together: 1},
	GA4:       {endpoint: "/mp/collect", params: []string{"measurement_id", "api_secret"}, secret: []string{"api_secret"}, window: 500, together: 25, byBot: true, maxAge: 71 * time.Hour},
	Plausible: {endpoint: "/api/event", params: []string{"domain"}, window: 256, together: 1, maxAge: 48 * time.Hour},
	Webhook:   {window: 400, together: 100},
}

// Target is where events go. It prints without what is secret.
type Target struct {
	Kind string
	url  *url.URL // of the API, with no query but GA4's and a webhook's
	say  url.Values
}

var (
	websiteForm     = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	measurementForm = regexp.MustCompile(`^G-[0-9A-Z]{4,20}$`)
	domainForm      = regexp.MustCompile(`^[^\s,/:?#]+(/[^\s,:?#]*)?$`)
)

// ParseTarget reads KIND=URL. The query of the URL says what a provider wants to
// know beside it: of umami website, the id that it has for the site; of plausible
// domain, the site's name there; of ga4 measurement_id and api_secret. A provider's
// URL may leave out the path of its API. Errors are [millrace.ErrInvalid] and
// repeat nothing that may be secret.
func ParseTarget(text string) (*Target, error) {
	kind, raw, ok := strings.Cut(text, "=")
	r, known := receivers[kind]
	kinds := strings.Join(slices.Sorted(maps.Keys(receivers)), ", ")
	switch {
	case !ok || strings.ContainsAny(kind, ":/?"):
		return nil, fmt.Errorf("it says not what kind of receiver it is: write KIND=URL, with one of %s: %w", kinds, millrace.Coded("target-kind", millrace.ErrInvalid))
	case !known:
		return nil, fmt.Errorf("%.20q is no kind of receiver; there is %s: %w", kind, kinds, millrace.Coded("target-kind", millrace.ErrInvalid))
	}
	u, err := fetch.Endpoint(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	t := &Target{Kind: kind, url: u}
	if kind == Webhook {
		return t, nil
	}
	if t.say, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, fmt.Errorf("%s: its query cannot be read: %w", t, millrace.Coded("bad-query", millrace.ErrInvalid))
	}
	for _, name := range r.params {
		if t.say.Get(name) == "" {
			return nil, fmt.Errorf("%s: its query has no %s: %w", t, name, millrace.Coded("query-missing", millrace.ErrInvalid))
		}
	}
	for name, values := range t.say {
		if !slices.Contains(r.params, name) || len(values) > 1 {
			return nil, fmt.Errorf("%s: its query has %.40q, and wants one %s and nothing else: %w", t, name, strings.Join(r.params, " and one "), millrace.Coded("query-extra", millrace.ErrInvalid))
		}
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", t, err, millrace.ErrInvalid)
	}
	if u.RawQuery = ""; kind == GA4 {
		u.RawQuery = t.say.Encode()
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	if !strings.HasSuffix(u.Path, r.endpoint) {
		u.Path += r.endpoint
	}
	return t, nil
}

// check looks at what the query says.
func (t *Target) check() error {
	switch t.Kind {
	case Umami:
		if !websiteForm.MatchString(t.say.Get("website")) {
			return millrace.Coded("bad-website", fmt.Errorf("website is the id of a website, such as 123e4567-e89b-42d3-a456-426614174000"))
		}
	case Plausible:
		if !domainForm.MatchString(t.say.Get("domain")) {
			return millrace.Coded("bad-domain", fmt.Errorf("domain is the name of one site there, such as example.com"))
		}
	case GA4:
		if !measurementForm.MatchString(t.say.Get("measurement_id")) {
			return millrace.Coded("bad-measurement", fmt.Errorf("measurement_id is that of a web stream, such as G-ABC1234567"))
		}
		if t.url.Scheme != "https" && !loopback(t.url.Hostname()) {
			return millrace.Coded("https-only", fmt.Errorf("its secret goes over https only"))
		}
	}
	return nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// String returns the kind and where the receiver is, up to its host.
func (t *Target) String() string { return t.Kind + " " + fetch.HostOf(t.url.String()) }

// GoString returns the same.
func (t *Target) GoString() string { return t.String() }

// Name identifies the receiver without revealing its URL. A new secret does not
// change it.
func (t *Target) Name() string {
	u := *t.url
	if t.Kind != Webhook { // whose whole URL is its name
		say := maps.Clone(t.say)
		for _, name := range receivers[t.Kind].secret {
			say.Del(name)
		}
		u.RawQuery = say.Encode()
	}
	sum := sha256.Sum256([]byte(u.String()))
	return t.Kind + " " + hex.EncodeToString(sum[:8])
}
