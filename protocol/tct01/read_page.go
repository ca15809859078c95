package tct01

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// Page gets the document of a page: from have.Location, where a list said it
// is, else from where the page's own links lead.
func (r *reader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if r.err != nil {
		return nil, r.err
	}
	u, err := url.Parse(r.root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", Name, err, millrace.ErrInvalid)
	}
	if have.URL, err = canon.Resolve(u, have.URL); err != nil {
		return nil, fmt.Errorf("%s: page: %w: %w", Name, err, millrace.ErrInvalid)
	}
	if have.Location == "" {
		return r.single(ctx, have)
	}
	return r.machine(ctx, have.Location, have.Version, have.URL)
}

// maxAlternates is how many JSON alternates of a page are tried: sites have
// others than that of this protocol.
const maxAlternates = 4

// single finds the document of a page without a list (1.4.2; B.7): by a Link
// field or a link element of the page, to a document that leads back.
func (r *reader) single(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	resp, err := r.get(ctx, http.MethodGet, have.URL, map[string]string{"Accept": "text/html, */*;q=0.1"})
	if err != nil {
		return nil, fmt.Errorf("%s: page: %w", Name, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, fmt.Errorf("%s: page: %w", Name, err)
	}
	final, err := canon.URL(resp.Request.URL.String())
	if err != nil {
		return nil, fmt.Errorf("%s: page: %w: %w", Name, err, millrace.ErrInvalid)
	}
	links := weblink.Header(resp.Header, resp.Request.URL)
	if weblink.IsHTML(resp.Header) {
		body, err := fetch.Decode(resp)
		if err != nil {
			return nil, fmt.Errorf("%s: page: %w", Name, err)
		}
		links = append(links, weblink.HTML(body, resp.Request.URL).Links...)
		_ = body.Close()
	}
	_ = resp.Body.Close() // one answer at a time: what is open is in the way of the others
	err = fmt.Errorf("%s: %s names no JSON alternate: %w", Name, have.URL, millrace.ErrNotFound)
	tried := map[string]bool{}
	for _, l := range links {
		if !l.Is("alternate", tct.MediaType) || tried[l.URL] || len(tried) == maxAlternates {
			continue
		}
		first := len(tried) == 0
		tried[l.URL] = true
		p, e := (*millrace.Page)(nil), error(&millrace.FormatError{
			Protocol: Name, URL: l.URL, Section: "1.7.3", Reason: "it is on another origin than its page",
		})
		if canon.Origin(l.URL) == canon.Origin(final) {
			p, e = r.machine(ctx, l.URL, have.Version, have.URL, final)
		}
		switch {
		case e == nil, errors.Is(e, millrace.ErrUnmodified):
			return p, e
		case !errors.Is(e, millrace.ErrInvalid) && !errors.Is(e, millrace.ErrNotFound):
			return nil, e
		case first:
			err = e
		}
	}
	return nil, err
}

// machine gets the M-URL of a page (1.8.2) that goes by one of the given
// C-URLs; version is the validator of what is held, "" if nothing is.
func (r *reader) machine(ctx context.Context, murl, version string, curls ...string) (*millrace.Page, error) {
	fields := map[string]string{"Accept": tct.MediaType, "If-None-Match": version}
	if r.o.Head && version != "" && r.unmodified(ctx, murl, fields) {
		return nil, fmt.Errorf("%s: %s: %w", Name, murl, millrace.ErrUnmodified)
	}
	return r.fetch(ctx, murl, fields, curls)
}

// fetch gets a document with the given fields of a request. One that does not
// match its own hash or tag is fetched once more, past what a cache may have
// kept; if it still does not match, it is unconfirmed.
func (r *reader) fetch(ctx context.Context, murl string, fields map[string]string, curls []string) (*millrace.Page, error) {
	version := fields["If-None-Match"]
	resp, err := r.get(ctx, http.MethodGet, murl, fields)
	if err != nil {
		return nil, fmt.Errorf("%s: document: %w", Name, err)
	}
	defer resp.Body.Close()
	if final, err := canon.URL(resp.Request.URL.String()); err != nil || canon.Origin(final) != canon.Origin(murl) {
		return nil, r.bad(murl, "1.7.3", "it redirects to another origin: "+canon.Origin(final), nil)
	}
	if resp.StatusCode == http.StatusNotModified {
		if version == "" {
			return nil, r.bad(murl, "1.8.2", "304 for a request without a condition", nil)
		}
		r.parity(murl, version)
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, fmt.Errorf("%s: document: %w", Name, err)
	}
	if millrace.SameVersion(resp.Header.Get("ETag"), version) {
		// The server knows the validator and sends the body all the same.
		r.note("1.8.2/if-none-match", murl, "the whole document for a validator that still holds")
		return nil, fmt.Errorf("%s: %s: %w", Name, murl, millrace.ErrUnmodified)
	}
	body, err := fetch.ReadBody(resp, tct.Limits.Size)
	if err != nil {
		return nil, fmt.Errorf("%s: document: %w", Name, err)
	}
	d, hash, err := decodeDocument(body)
	if err != nil {
		return nil, formatURL(err, murl)
	}
	holds := tct.IsHashOf(body, hash)
	if !holds && len(curls) > 1 && tct.IsFingerprint(d.Content, hash) {
		// It was found by a link, and not by a list of this draft.
		return nil, r.bad(murl, "1.5.2", "it is a document of draft-00", nil)
	}
	confirmed := tct.Confirmed(holds, hash, resp.Header.Get("ETag"))
	if !confirmed && fields["Cache-Control"] == "" {
		if p, err := r.fetch(ctx, murl, map[string]string{"Accept": tct.MediaType, "Cache-Control": "no-cache"}, curls); err == nil {
			return p, nil
		}
	}
	p, err := r.document(resp, d, hash, holds, murl, curls)
	if err == nil {
		p.Unconfirmed = !confirmed
	}
	return p, err
}

// unmodified asks by HEAD (1.8.3). Whatever is no clear answer is no answer.
func (r *reader) unmodified(ctx context.Context, murl string, fields map[string]string) bool {
	resp, err := r.get(ctx, http.MethodHead, murl, fields)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusNotModified ||
		resp.StatusCode == http.StatusOK && millrace.SameVersion(resp.Header.Get("ETag"), fields["If-None-Match"])
}

// document makes a page of a response. What would make it another page or no
// document is an error; what is only odd is a note.
func (r *reader) document(resp *http.Response, d *tct.Document, hash string, holds bool, murl string, curls []string) (*millrace.Page, error) {
	curl, err := canon.URL(d.CanonicalURL)
	if err != nil {
		return nil, r.bad(murl, "1.5.2", "canonical_url", err)
	}
	if err := r.leadsBack(murl, "canonical_url", curl, curls); err != nil {
		return nil, err
	}
	canonical := false
	for _, l := range weblink.Header(resp.Header, resp.Request.URL) {
		if l.Is("canonical", "") {
			canonical = true
			if err := r.leadsBack(murl, "its canonical link", l.URL, curls); err != nil {
				return nil, err
			}
		}
	}
	if !canonical {
		r.note("1.4.2/canonical-link", murl, "no canonical link")
	}
	if mt, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || mt != tct.MediaType ||
		params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		r.note("1.5.1/content-type", murl, "Content-Type is "+resp.Header.Get("Content-Type"))
	}
	etag := resp.Header.Get("ETag")
	opaque, strong := strings.CutPrefix(etag, `"`)
	opaque, closed := strings.CutSuffix(opaque, `"`)
	switch {
	case !strong || !closed:
		r.note("1.6.2/strong-etag", murl, "no strong ETag: "+etag)
	case opaque != hash:
		r.note("1.5.2/hash-equals-etag", murl, "hash is "+tct.Short(hash)+", ETag is "+tct.Short(etag))
	}
	version := etag
	if !holds {
		r.note("1.6.2/hash-recomputed", murl, "hash is not that of the document: "+tct.Short(hash))
	} else if version == "" {
		// The hash is what the tag would say (1.5.2). What the list says may
		// be of another body, which would then never be asked for.
		version = `"` + hash + `"`
	}
	r.parity(murl, version)
	d.CanonicalURL = curls[0]
	if tct.Compare(curl, curls[len(curls)-1]) == tct.Exact {
		d.CanonicalURL = curl // where the page's URL was redirected to
	}
	p := draft.Page(d)
	p.Version = version
	return p, nil
}

// parity notes that a list and a document disagree, which is no error (1.7.3).
func (r *reader) parity(murl, version string) {
	listed, ok := r.listed.Get(murl)
	if ok && listed != "" && version != "" && !millrace.SameVersion(listed, version) {
		r.note("1.7.3/parity", murl, "the list says "+tct.Short(listed)+", the document "+tct.Short(version))
	}
}

// leadsBack checks that what a document calls its page is the page that it
// was asked for (1.4.2).
func (r *reader) leadsBack(murl, what, to string, curls []string) error {
	best := tct.Different
	for _, c := range curls {
		best = min(best, tct.Compare(to, c))
	}
	switch best {
	case tct.Different:
		return r.bad(murl, "1.4.2", fmt.Sprintf("%s leads to %s, not to %s", what, to, curls[0]), nil)
	case tct.Near:
		r.note("1.4.2/canonical-link", murl, fmt.Sprintf("%s is %s, the page is %s", what, to, curls[0]))
	}
	return nil
}

func (r *reader) note(rule, url, text string) {
	r.o.Note(protocol.Note{Rule: Name + "/" + rule, URL: url, Text: text})
}

func (r *reader) bad(url, section, reason string, err error) error {
	return &millrace.FormatError{Protocol: Name, URL: url, Section: section, Reason: reason, Err: err}
}

// formatURL names the document of a format error that has its section.
func formatURL(err error, url string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.URL = url
	}
	return err
}
