package tct

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/recent"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/kit"
)

// discoveryAge is how long a reader remembers where the lists of a site are.
const discoveryAge = 24 * time.Hour

// tctReader reads the lists and the documents of a site. It is safe for concurrent
// use.
type tctReader struct {
	Options        protocol.ReaderOptions
	Endpoint, Root string // canonical URLs of the endpoint, and of the root of its origin
	Err            error  // of the endpoint

	d      *draft
	policy kit.Policy
	client *http.Client
	listed recent.Values
}

// NewReader reads the site at an endpoint, any URL of it. If client is nil, it is
// the guarded default; nil options are the zero value.
func (d *draft) NewReader(client *http.Client, endpoint string, o *protocol.ReaderOptions) *tctReader {
	r := &tctReader{d: d}
	if o != nil {
		r.Options = *o
	}
	r.client, r.Endpoint, r.Root, r.Err = r.Options.Start(d.Name, client, endpoint)
	r.Options.MaxList = cmp.Or(r.Options.MaxList, 100<<20)
	return r
}

// Get sends a GET with fields that are not "", and returns the response. Its URL is
// that after redirects.
func (r *tctReader) Get(ctx context.Context, target string, fields map[string]string) (*http.Response, error) {
	h := http.Header{}
	for k, v := range fields {
		if v != "" {
			h.Set(k, v)
		}
	}
	return kit.Get(ctx, r.client, http.MethodGet, target, h)
}

// Note reports something odd to the options' Note. rule has no protocol, such as
// "4.2/strong-etag".
func (r *tctReader) Note(rule, url, text string) {
	r.Options.Note(protocol.Note{Rule: r.d.Name + "/" + rule, URL: url, Text: text})
}

// Bad returns a [*millrace.FormatError]. Of rule only the section counts.
func (r *tctReader) Bad(url, rule, reason string, err error) error {
	return &millrace.FormatError{Protocol: r.d.Name, URL: url, Section: section(rule), Reason: reason, Err: err}
}
