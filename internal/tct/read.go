package tct

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/recent"
	"github.com/millrace/millrace/protocol"
)

// DiscoveryAge is how long a reader remembers where the lists of a site are.
const DiscoveryAge = 24 * time.Hour

// Reader reads the lists and the documents of a site. It is safe for concurrent
// use.
type Reader struct {
	Options        protocol.ReaderOptions
	Head           bool             // ask with HEAD before a GET of a changed document
	Now            func() time.Time // the clock
	Endpoint, Root string           // canonical URLs of the endpoint, and of the root of its origin
	Err            error            // of the endpoint

	d      *Draft
	client *http.Client
	listed recent.Values
}

// NewReader reads the site at an endpoint, any URL of it. If client is nil, it is
// the guarded default; if now is nil, [time.Now].
func (d *Draft) NewReader(client *http.Client, endpoint string, o protocol.ReaderOptions, now func() time.Time) *Reader {
	if client == nil {
		client = fetch.New(nil).HTTP()
	}
	r := &Reader{Options: o, Now: now, d: d, client: fetch.WithKeys(client, o.Key)}
	if r.Options.MaxList == 0 {
		r.Options.MaxList = 100 << 20
	}
	if r.Options.Note == nil {
		r.Options.Note = func(protocol.Note) {}
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Endpoint, r.Err = canon.URL(endpoint); r.Err != nil {
		r.Err = fmt.Errorf("%s: %w: %w", d.Name, r.Err, millrace.ErrInvalid)
	}
	r.Root = canon.Origin(r.Endpoint) + "/"
	return r
}

// Get sends a GET with fields that are not "", and returns the response. Its URL is
// that after redirects.
func (r *Reader) Get(ctx context.Context, target string, fields map[string]string) (*http.Response, error) {
	return r.send(ctx, http.MethodGet, target, fields)
}

func (r *Reader) send(ctx context.Context, method, target string, fields map[string]string) (*http.Response, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	req := &http.Request{Method: method, URL: u, Host: u.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	for k, v := range fields {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	resp, err := fetch.Do(ctx, r.client, req)
	if err != nil {
		return nil, err
	}
	if resp.Request == nil {
		resp.Request = req
	}
	return resp, nil
}

// Note reports something odd to the options' Note. rule has no protocol, such as
// "4.2/strong-etag".
func (r *Reader) Note(rule, url, text string) {
	r.Options.Note(protocol.Note{Rule: r.d.Name + "/" + rule, URL: url, Text: text})
}

// Bad returns a [*millrace.FormatError]. Of rule only the section counts.
func (r *Reader) Bad(url, rule, reason string, err error) error {
	return &millrace.FormatError{Protocol: r.d.Name, URL: url, Section: section(rule), Reason: reason, Err: err}
}
