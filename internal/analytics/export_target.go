package analytics

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// Kinds of receivers.
const (
	Umami     = "umami"
	GA4       = "ga4"
	Plausible = "plausible"
	Webhook   = "webhook"
)

// receiver describes a kind of receiver.
type receiver struct {
	endpoint string   // path of the API. If empty, the exporter uses the path of the target.
	params   []string // required parameters in the query of a target
	secret   []string // the confidential parameters, which may change
	window   int      // maximum number of events per read
	together int      // maximum number of events per request
	byBot    bool     // one request per bot
	// maxAge is the maximum age of an event, for receivers that date events by their arrival. If
	// zero, any age.
	maxAge time.Duration
}

var receivers = map[string]receiver{
	Umami:     {endpoint: "/api/send", params: []string{"website"}, window: 256, together: 1},
	GA4:       {endpoint: "/mp/collect", params: []string{"measurement_id", "api_secret"}, secret: []string{"api_secret"}, window: 500, together: 25, byBot: true, maxAge: 71 * time.Hour},
	Plausible: {endpoint: "/api/event", params: []string{"domain"}, window: 256, together: 1, maxAge: 48 * time.Hour},
	Webhook:   {window: 400, together: 100},
}

// Target is the address of a receiver. Its String omits secrets.
type Target struct {
	Kind string
	url  *url.URL // URL of the API; only ga4 and webhook URLs have a query
	say  url.Values
}

var (
	websiteForm     = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	measurementForm = regexp.MustCompile(`^G-[0-9A-Z]{4,20}$`)
	domainForm      = regexp.MustCompile(`^[^\s,/:?#]+(/[^\s,:?#]*)?$`)
)

// ParseTarget parses KIND=URL. The query of the URL holds the parameters of the service:
// website (the site's ID) for umami, domain (the site's name) for plausible, measurement_id
// and api_secret for ga4. The URL of a service may omit the path of its API. Errors wrap
// [millrace.ErrInvalid] and contain no secret.
func ParseTarget(text string) (*Target, error) {
	kind, raw, ok := strings.Cut(text, "=")
	r, known := receivers[kind]
	kinds := strings.Join(slices.Sorted(maps.Keys(receivers)), ", ")
	switch {
	case !ok || strings.ContainsAny(kind, ":/?"):
		return nil, fmt.Errorf("receiver has no kind: %[2]w; write KIND=URL, with one of %[1]s", kinds, millrace.Coded("target-kind", millrace.ErrInvalid))
	case !known:
		return nil, fmt.Errorf("unknown kind of receiver %.20[1]q: %[3]w; use one of %[2]s", kind, kinds, millrace.Coded("target-kind", millrace.ErrInvalid))
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
		return nil, fmt.Errorf("%s: bad query: %w", t, millrace.Coded("bad-query", millrace.ErrInvalid))
	}
	for _, name := range r.params {
		if t.say.Get(name) == "" {
			return nil, fmt.Errorf("%s: query lacks %s: %w", t, name, millrace.Coded("query-missing", millrace.ErrInvalid))
		}
	}
	for name, values := range t.say {
		if !slices.Contains(r.params, name) || len(values) > 1 {
			return nil, fmt.Errorf("%s: unexpected %.40q in the query, which takes one %s: %w", t, name, strings.Join(r.params, " and one "), millrace.Coded("query-extra", millrace.ErrInvalid))
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

// check validates the query.
func (t *Target) check() error {
	switch t.Kind {
	case Umami:
		if !websiteForm.MatchString(t.say.Get("website")) {
			return millrace.Coded("bad-website", fmt.Errorf("bad website; use the ID of a website, such as 123e4567-e89b-42d3-a456-426614174000"))
		}
	case Plausible:
		if !domainForm.MatchString(t.say.Get("domain")) {
			return millrace.Coded("bad-domain", fmt.Errorf("bad domain; use the name of one site, such as example.com"))
		}
	case GA4:
		if !measurementForm.MatchString(t.say.Get("measurement_id")) {
			return millrace.Coded("bad-measurement", fmt.Errorf("bad measurement_id; use that of a web stream, such as G-ABC1234567"))
		}
		if t.url.Scheme != "https" && !fetch.IsLoopback(t.url.Hostname()) {
			return millrace.Coded("https-only", fmt.Errorf("secret over http; use https"))
		}
	}
	return nil
}

// String returns the kind and the origin of the receiver.
func (t *Target) String() string { return t.Kind + " " + fetch.HostOf(t.url.String()) }

// GoString returns String.
func (t *Target) GoString() string { return t.String() }

// Name returns a name that identifies the receiver and contains no URL. It does not depend on
// secrets.
func (t *Target) Name() string {
	u := *t.url
	if t.Kind != Webhook { // the whole URL of a webhook identifies it
		say := maps.Clone(t.say)
		for _, name := range receivers[t.Kind].secret {
			say.Del(name)
		}
		u.RawQuery = say.Encode()
	}
	sum := sha256.Sum256([]byte(u.String()))
	return t.Kind + " " + hex.EncodeToString(sum[:8])
}
