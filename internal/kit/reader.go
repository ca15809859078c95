package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// DiscoveryAge is how long a reader caches the results of discovery.
const DiscoveryAge = 24 * time.Hour

// Reader is the common part of the readers of all protocols, which embed it. It is safe for
// concurrent use.
type Reader struct {
	Name           string       // name of the protocol
	Client         *http.Client // client that sends the API keys
	Endpoint, Root string       // canonical URLs of the endpoint, and of the root of its origin
	Err            error        // error of the endpoint, which makes reading impossible
	Options        *protocol.ReaderOptions
}

// NewReader returns the reader of the site at endpoint, which may be any URL of the site. It
// sets the defaults in o, which the reader keeps. If client is nil, the reader uses the
// guarded default client.
func NewReader(name string, client *http.Client, endpoint string, o *protocol.ReaderOptions) Reader {
	if client == nil {
		client = fetch.New(nil).HTTP()
	}
	if o.Note == nil {
		o.Note = func(protocol.Note) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := Reader{Name: name, Client: fetch.WithKeys(client, o.Key), Options: o}
	var err error
	if r.Endpoint, err = canon.URL(endpoint); err != nil {
		r.Err = fmt.Errorf("%s: %w: %w", name, err, millrace.ErrInvalid)
	}
	r.Root = canon.Origin(r.Endpoint) + "/"
	return r
}

// Value returns the value that p points to, or the zero value if p is nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Now returns the current time in UTC and whole seconds.
func (r *Reader) Now() time.Time { return r.Options.Now().UTC().Truncate(time.Second) }

// IsFresh reports whether a result of discovery from the given time is still valid.
func (r *Reader) IsFresh(found time.Time) bool {
	age := r.Now().Sub(found)
	return !found.IsZero() && age >= 0 && age < DiscoveryAge
}

// Note reports a deviation. rule is the ID of the rule without the protocol, such as
// "4.2/strong-etag".
func (r *Reader) Note(rule, url, text string) {
	r.Options.Note(protocol.Note{Rule: r.Name + "/" + rule, URL: url, Text: text})
}

// FormatError returns a [*millrace.FormatError]. It uses only the section of rule. err may be nil.
func (r *Reader) FormatError(url, rule, reason string, err error) error {
	section, _, _ := strings.Cut(rule, "/")
	return &millrace.FormatError{Protocol: r.Name, URL: url, Section: section, Reason: reason, Err: err}
}

// Get sends a GET for media types, conditional if v has validators. The URL of the response is
// the one after redirects.
func (r *Reader) Get(ctx context.Context, target, accept string, v fetch.Validators) (*http.Response, error) {
	return Get(ctx, r.Client, http.MethodGet, target, Accept(accept, v))
}

// Head sends a HEAD as [Reader.Get] sends a GET. The caller need not close the response.
func (r *Reader) Head(ctx context.Context, target, accept string, v fetch.Validators) (*http.Response, error) {
	resp, err := Get(ctx, r.Client, http.MethodHead, target, Accept(accept, v))
	if err == nil {
		_ = resp.Body.Close()
	}
	return resp, err
}

// Resume decodes a cursor, unless it is "". valid reports whether the decoded state is a
// cursor of the site.
func (r *Reader) Resume(since millrace.Cursor, state any, valid func() bool) error {
	if r.Err != nil || since == "" {
		return r.Err
	}
	if err := json.Unmarshal([]byte(since), state); err != nil || !valid() {
		return fmt.Errorf("%s: the cursor does not belong to %s: %w", r.Name, r.Root, millrace.ErrConflict)
	}
	return nil
}

// Resolve returns the canonical URL of a page, which may be relative to the root.
func (r *Reader) Resolve(page string) (string, error) {
	if r.Err != nil {
		return "", r.Err
	}
	root, err := url.Parse(r.Root)
	if err == nil {
		page, err = canon.Resolve(root, page)
	}
	if err != nil {
		return "", fmt.Errorf("%s: page: %w: %w", r.Name, err, millrace.ErrInvalid)
	}
	return page, nil
}
