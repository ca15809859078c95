package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// Policy is the document with a site's terms of use for its content. It caches the result for
// [DiscoveryAge]. It is safe for concurrent use.
type Policy struct {
	*Reader
	URLs  []string // possible URLs of the document
	Types string   // Accept field of the request
	Limit int64    // size limit in bytes
	Names protocol.MemberNames
	// Decode decodes the document at a URL. It returns ErrNotFound for another kind of
	// document.
	Decode func(resp *http.Response, body []byte, at string) (*millrace.Policy, error)

	mu   sync.Mutex
	read time.Time // time of the last reading; zero if none
	says *millrace.Policy
}

// Get returns the decoded document. The error is ErrNotFound if the site has no policy, or none for
// this reader ([fetch.Absent]).
func (p *Policy) Get(ctx context.Context) (*millrace.Policy, error) {
	if p.Err != nil {
		return nil, p.Err
	}
	says, known := p.Known()
	for i := 0; !known && i < len(p.URLs); i++ {
		var err error
		if says, err = p.At(ctx, p.URLs[i]); err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return nil, err
		}
		known = err == nil
	}
	if !known {
		p.keep(nil)
	}
	if says == nil {
		return nil, fmt.Errorf("%s: %s has no policy: %w", p.Name, p.Root, millrace.ErrNotFound)
	}
	return says, nil
}

// At reads the document at a URL and caches the result. It treats HTML as absent.
func (p *Policy) At(ctx context.Context, at string) (*millrace.Policy, error) {
	body, resp, err := p.Read(ctx, "policy", at, p.Types, fetch.Validators{}, p.Limit) //nolint:bodyclose // Read has closed it
	switch {
	case fetch.Absent(err):
		return nil, fmt.Errorf("%s: policy: %w: %v", p.Name, millrace.ErrNotFound, errors.Unwrap(err)) //nolint:errorlint // the error must wrap only one sentinel
	case err != nil:
		return nil, err
	case weblink.IsHTML(resp.Header):
		return nil, fmt.Errorf("%s: policy: %s is HTML: %w", p.Name, at, millrace.ErrNotFound)
	}
	says, err := p.Decode(resp, body, at)
	if err != nil {
		return nil, err
	}
	if p.Options.Policy != nil {
		if err := p.Options.Policy(protocol.Terms{URL: at, Policy: says, Names: p.Names}); err != nil {
			return nil, RefusedError{err}
		}
	}
	p.keep(says)
	return says, nil
}

// Known returns the cached document, or nil if the site has none, and whether the cache is filled.
func (p *Policy) Known() (*millrace.Policy, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := p.Options.Now().Sub(p.read); p.read.IsZero() || age < 0 || age >= DiscoveryAge {
		return nil, false
	}
	return p.says, true
}

func (p *Policy) keep(says *millrace.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read, p.says = p.Options.Now(), says
}

// NoteOrRefuse returns err, which ends the stream, if the caller has refused the policy or ctx has
// ended. Otherwise NoteOrRefuse reports err as a Note, unless the document is absent.
func (p *Policy) NoteOrRefuse(ctx context.Context, at string, err error) error {
	_, refused := errors.AsType[RefusedError](err)
	switch {
	case err == nil, errors.Is(err, millrace.ErrNotFound) && !refused:
		return nil
	case refused, ctx.Err() != nil:
		return err
	}
	p.Note("reader/policy", at, "cannot read the policy: "+err.Error())
	return nil
}

// RefusedError is an error of ReaderOptions.Policy. It ends the stream.
type RefusedError struct{ error }

// Unwrap returns the caller's error.
func (e RefusedError) Unwrap() error { return e.error }
