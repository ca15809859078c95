package tct00

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
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
func (r *Reader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
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
	if r.o.Handshake {
		if err := r.shakes(ctx, have); err != nil {
			return nil, err
		}
	}
	return r.machine(ctx, have.Location, have.Version, have.URL)
}

// shakes asks the page whether it leads to the M-URL that the list names (3.1).
func (r *Reader) shakes(ctx context.Context, have millrace.Ref) error {
	links, _, err := r.alternates(ctx, have.URL)
	if err != nil {
		return err
	}
	murl, err := canon.URL(have.Location)
	if err != nil {
		return fmt.Errorf("%s: page: %w: %w", Name, err, millrace.ErrInvalid)
	}
	if !slices.Contains(links, murl) {
		return r.bad(have.URL, "3.1", "its HTML does not lead to "+murl, nil)
	}
	return nil
}

// maxAlternates is how many JSON alternates of a page are tried: sites have
// others than that of this protocol.
const maxAlternates = 4

// single finds the document of a page without a list: by a link element of the
// page (3.1), or a Link field, to a document that leads back (3.2).
func (r *Reader) single(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	links, final, err := r.alternates(ctx, have.URL)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("%s: %s names no JSON alternate: %w", Name, have.URL, millrace.ErrNotFound)
	for i, target := range links[:min(len(links), maxAlternates)] {
		p, e := (*millrace.Page)(nil), r.bad(target, "3.1", "it is on another origin than its page", nil)
		if canon.Origin(target) == canon.Origin(final) {
			p, e = r.machine(ctx, target, have.Version, have.URL, final)
		}
		switch {
		case e == nil, errors.Is(e, millrace.ErrUnmodified):
			return p, e
		case !errors.Is(e, millrace.ErrInvalid) && !errors.Is(e, millrace.ErrNotFound):
			return nil, e
		case i == 0:
			err = e
		}
	}
	return nil, err
}

// alternates gives where the JSON alternates of a page are, those of its HTML
// first, and the URL of the page after redirects.
func (r *Reader) alternates(ctx context.Context, page string) (targets []string, final string, err error) {
	resp, err := r.get(ctx, page, map[string]string{"Accept": "text/html, */*;q=0.1"})
	if err != nil {
		return nil, "", fmt.Errorf("%s: page: %w", Name, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, "", fmt.Errorf("%s: page: %w", Name, err)
	}
	if final, err = canon.URL(resp.Request.URL.String()); err != nil {
		return nil, "", fmt.Errorf("%s: page: %w: %w", Name, err, millrace.ErrInvalid)
	}
	var links []weblink.Link
	if weblink.IsHTML(resp.Header) {
		body, err := fetch.Decode(resp)
		if err != nil {
			return nil, "", fmt.Errorf("%s: page: %w", Name, err)
		}
		links = weblink.HTML(body, resp.Request.URL).Links
		_ = body.Close()
	}
	for _, l := range append(links, weblink.Header(resp.Header, resp.Request.URL)...) {
		if l.Is("alternate", tct.MediaType) && !slices.Contains(targets, l.URL) {
			targets = append(targets, l.URL)
		}
	}
	return targets, final, nil
}

// machine gets the M-URL of a page (5.2) that goes by one of the given
// C-URLs; version is the validator of what is held, "" if nothing is.
func (r *Reader) machine(ctx context.Context, murl, version string, curls ...string) (*millrace.Page, error) {
	return r.fetch(ctx, murl, map[string]string{"Accept": tct.MediaType, "If-None-Match": version}, curls)
}

// fetch gets a document with the given fields of a request. One that does not
// match its own hash or tag is fetched once more, past what a cache may have
// kept; if it still does not match, it is unconfirmed.
func (r *Reader) fetch(ctx context.Context, murl string, fields map[string]string, curls []string) (*millrace.Page, error) {
	version := fields["If-None-Match"]
	resp, err := r.get(ctx, murl, fields)
	if err != nil {
		return nil, fmt.Errorf("%s: document: %w", Name, err)
	}
	defer resp.Body.Close()
	if final, err := canon.URL(resp.Request.URL.String()); err != nil || canon.Origin(final) != canon.Origin(murl) {
		return nil, r.bad(murl, "6.1", "it redirects to another origin: "+canon.Origin(final), nil)
	}
	if resp.StatusCode == http.StatusNotModified {
		if version == "" {
			return nil, r.bad(murl, "5.2", "304 for a request without a condition", nil)
		}
		r.parity(murl, version)
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, fmt.Errorf("%s: document: %w", Name, err)
	}
	if millrace.SameVersion(resp.Header.Get("ETag"), version) {
		// The server knows the validator and sends the body all the same.
		r.note("5.2/not-modified", murl, "the whole document for a validator that still holds")
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
	holds := tct.IsFingerprint(d.Content, hash)
	if !holds && len(curls) > 1 && tct.IsHashOf(body, hash) {
		// It was found by a link, and not by a list of this draft.
		return nil, r.bad(murl, "8.2", "it is a document of draft-01", nil)
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

// document makes a page of a response. What would make it another page or no
// document is an error; what is only odd is a note.
func (r *Reader) document(resp *http.Response, d *tct.Document, hash string, holds bool, murl string, curls []string) (*millrace.Page, error) {
	curl, err := canon.URL(d.CanonicalURL)
	if err != nil {
		return nil, r.bad(murl, "8.2", "canonical_url", err)
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
		r.note("3.2/canonical-link", murl, "no canonical link")
	}
	if mt, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || mt != tct.MediaType ||
		params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		r.note("8.1/content-type", murl, "Content-Type is "+resp.Header.Get("Content-Type"))
	}
	etag := resp.Header.Get("ETag")
	opaque, strong := strings.CutPrefix(etag, `"`)
	opaque, closed := strings.CutSuffix(opaque, `"`)
	switch {
	case !strong || !closed:
		r.note("4.2/strong-etag", murl, "no strong ETag: "+tct.Short(etag))
	case opaque != tct.HashPrefix+strings.TrimPrefix(hash, tct.HashPrefix):
		r.note("8.2/hash-equals-etag", murl, "hash is "+tct.Short(hash)+", ETag is "+tct.Short(etag))
	}
	version := etag
	if !holds {
		r.note("4.1/fingerprint", murl, "hash is not that of the content: "+tct.Short(hash))
	} else if version == "" {
		// The hash is what the tag would say (8.2). What the list says may be
		// of another body, which would then never be asked for.
		version = `"` + tct.HashPrefix + strings.TrimPrefix(hash, tct.HashPrefix) + `"`
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

// parity notes that a list and a document disagree: one of them is older.
func (r *Reader) parity(murl, version string) {
	listed, ok := r.listed.Get(murl)
	if ok && listed != "" && version != "" && !millrace.SameVersion(listed, version) {
		r.note("6.1/parity", murl, "the list says "+tct.Short(listed)+", the document "+tct.Short(version))
	}
}

// leadsBack checks that what a document calls its page is the page that it
// was asked for (3.2).
func (r *Reader) leadsBack(murl, what, to string, curls []string) error {
	best := tct.Different
	for _, c := range curls {
		best = min(best, tct.Compare(to, c))
	}
	switch best {
	case tct.Different:
		return r.bad(murl, "3.2", fmt.Sprintf("%s leads to %s, not to %s", what, to, curls[0]), nil)
	case tct.Near:
		r.note("3.2/canonical-link", murl, fmt.Sprintf("%s is %s, the page is %s", what, to, curls[0]))
	}
	return nil
}

func (r *Reader) note(rule, url, text string) {
	r.o.Note(protocol.Note{Rule: Name + "/" + rule, URL: url, Text: text})
}

func (r *Reader) bad(url, section, reason string, err error) error {
	return &millrace.FormatError{Protocol: Name, URL: url, Section: section, Reason: reason, Err: err}
}

// formatURL names the document of a format error that has its section.
func formatURL(err error, url string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.URL = url
	}
	return err
}
