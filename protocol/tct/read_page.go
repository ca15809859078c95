package tct

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// maxAlternates is the maximum number of JSON alternates of a page that are tried. Some may not
// belong to TCT.
const maxAlternates = 4

// Page fetches the document of a page from have.Location, the URL in a list, or else from the JSON
// alternates to which the page links.
func (r *tctReader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if r.d.Handshake && r.Options.CheckPageLinks && have.Location != "" {
		if err := r.checkHandshake(ctx, have); err != nil {
			return nil, err
		}
	}
	var err error
	if have.URL, err = r.Resolve(have.URL); err != nil {
		return nil, err
	}
	if have.Location == "" {
		return r.single(ctx, have)
	}
	return r.machine(ctx, have.Location, have.Version, have.URL)
}

// checkHandshake fetches the page, and checks that it links to the M-URL in the list (3.1).
func (r *tctReader) checkHandshake(ctx context.Context, have millrace.Ref) error {
	links, _, err := r.Alternates(ctx, have.URL)
	if err != nil {
		return err
	}
	murl, err := canon.URL(have.Location)
	if err != nil {
		return fmt.Errorf("%s: page: %w: %w", r.d.Name, err, millrace.ErrInvalid)
	}
	if !slices.Contains(links, murl) {
		return r.FormatError(have.URL, r.d.RuleNames.Alternate, "the HTML of the page does not link to "+murl, nil)
	}
	return nil
}

// single finds the document of a page without using a list. It follows the links of the page to a
// document that links back.
func (r *tctReader) single(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	links, final, err := r.Alternates(ctx, have.URL)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("%s: %s has no link to a JSON alternate: %w", r.d.Name, have.URL, millrace.ErrNotFound)
	for i, target := range links[:min(len(links), maxAlternates)] {
		p, e := (*millrace.Page)(nil), r.FormatError(target, r.d.RuleNames.Alternate, "not on the origin of its page", nil)
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

// Alternates returns the JSON alternates of a page, and the URL of the page after redirects.
func (r *tctReader) Alternates(ctx context.Context, page string) (targets []string, final string, err error) {
	if page, err = r.Resolve(page); err != nil {
		return nil, "", err
	}
	resp, err := r.Open(ctx, "page", page, kit.HTMLTypes, fetch.Validators{})
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if final, err = canon.URL(resp.Request.URL.String()); err != nil {
		return nil, "", fmt.Errorf("%s: page: %w: %w", r.d.Name, err, millrace.ErrInvalid)
	}
	head, err := kit.ReadHead(resp)
	if err != nil {
		return nil, "", fmt.Errorf("%s: page: %w", r.d.Name, err)
	}
	if n := len(weblink.Header(resp.Header, resp.Request.URL)); r.d.HTMLFirst {
		head.Links = slices.Concat(head.Links[n:], head.Links[:n])
	}
	for _, l := range head.Links {
		if l.Is("alternate", mediaType) && !slices.Contains(targets, l.URL) {
			targets = append(targets, l.URL)
		}
	}
	return targets, final, nil
}

// machine fetches the M-URL of a page with one of the given C-URLs. version is the validator of the
// stored document, or "" if none is stored.
func (r *tctReader) machine(ctx context.Context, murl, version string, curls ...string) (*millrace.Page, error) {
	return r.fetch(ctx, murl, kit.Accept(mediaType, fetch.Validators{ETag: version}), curls)
}

// fetch fetches a document with the given request fields. If the document does not match its own
// hash or tag, fetch repeats the request, bypassing caches. If the document still does not match,
// the page is marked as unconfirmed.
func (r *tctReader) fetch(ctx context.Context, murl string, fields http.Header, curls []string) (*millrace.Page, error) {
	version := fields.Get("If-None-Match")
	resp, err := kit.Get(ctx, r.Client, http.MethodGet, murl, fields)
	if err != nil {
		return nil, fmt.Errorf("%s: document: %w", r.d.Name, err)
	}
	defer resp.Body.Close()
	if final, err := canon.URL(resp.Request.URL.String()); err != nil || canon.Origin(final) != canon.Origin(murl) {
		return nil, r.FormatError(murl, r.d.RuleNames.Parity, "redirects to another origin: "+canon.Origin(final), nil)
	}
	if resp.StatusCode == http.StatusNotModified {
		if version == "" {
			return nil, r.FormatError(murl, r.d.RuleNames.NotModified, "304 for an unconditional request", nil)
		}
		r.parity(murl, version)
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, fmt.Errorf("%s: document: %w", r.d.Name, err)
	}
	etag := resp.Header.Get("ETag")
	if millrace.SameVersion(etag, version) {
		// The server has sent the body although the validator matches.
		r.Note(r.d.RuleNames.NotModified, murl, "full response although the validator matches")
		return nil, fmt.Errorf("%s: %s: %w", r.d.Name, murl, millrace.ErrUnmodified)
	}
	body, err := fetch.ReadBody(resp, jsonLimits.Size)
	if err != nil {
		return nil, fmt.Errorf("%s: document: %w", r.d.Name, err)
	}
	d, hash, err := r.d.Decode(body)
	if err != nil {
		if f, ok := errors.AsType[*millrace.FormatError](err); ok {
			f.URL = murl
		}
		return nil, err
	}
	holds := r.d.Holds == nil || r.d.Holds(d, body, hash)
	if !holds && len(curls) > 1 && (isFingerprint(d.Content, hash) || isHashOf(body, hash)) {
		// The document was found by a link, and not in a list of this draft.
		return nil, r.FormatError(murl, r.d.RuleNames.CanonicalURL, "document of another draft", nil)
	}
	confirmed := isConfirmed(holds, hash, etag)
	if !confirmed && fields.Get("Cache-Control") == "" {
		if p, err := r.fetch(ctx, murl, http.Header{"Accept": {mediaType}, "Cache-Control": {"no-cache"}}, curls); err == nil {
			return p, nil
		}
	}
	p, err := r.document(resp, d, hash, holds, murl, curls)
	if err == nil {
		p.Unconfirmed = !confirmed
	}
	return p, err
}

// document returns the page in a response. If a mismatch shows that the response is not a document,
// or is the document of another page, it returns an error. Other mismatches are reported as notes.
func (r *tctReader) document(resp *http.Response, d *document, hash string, holds bool, murl string, curls []string) (*millrace.Page, error) {
	rules := &r.d.RuleNames
	curl, err := canon.URL(d.CanonicalURL)
	if err != nil {
		return nil, r.FormatError(murl, rules.CanonicalURL, "canonical_url", err)
	}
	if err := r.checkTarget(murl, "canonical_url", curl, curls); err != nil {
		return nil, err
	}
	canonical := false
	for _, l := range weblink.Header(resp.Header, resp.Request.URL) {
		if l.Is("canonical", "") {
			canonical = true
			if err := r.checkTarget(murl, "the canonical link", l.URL, curls); err != nil {
				return nil, err
			}
		}
	}
	if !canonical {
		r.Note(rules.CanonicalLink, murl, "no canonical link")
	}
	if mt, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || mt != mediaType ||
		params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		r.Note(rules.ContentType, murl, "Content-Type is "+resp.Header.Get("Content-Type"))
	}
	etag, tag := resp.Header.Get("ETag"), hash
	if r.d.PlainHash {
		tag = tagOf(hash)
	}
	opaque, strong := strings.CutPrefix(etag, `"`)
	opaque, closed := strings.CutSuffix(opaque, `"`)
	switch {
	case !strong || !closed:
		r.Note(rules.StrongETag, murl, "no strong ETag: "+kit.Short(etag))
	case opaque != tag && tag != "":
		r.Note(rules.HashEqualsETag, murl, "hash is "+kit.Short(hash)+", ETag is "+kit.Short(etag))
	}
	version := etag
	if !holds {
		r.Note(rules.Hash, murl, "hash does not match the document: "+kit.Short(hash))
	} else if tag != "" && !strings.Contains(version, hashPrefix) {
		// Use the hash in place of the tag. The validator in the list may belong to another body,
		// which would then never be fetched. A tag that a proxy has set never equals the validator
		// in the list.
		version = `"` + tag + `"`
	}
	r.parity(murl, version)
	d.CanonicalURL = curls[0]
	if compareURLs(curl, curls[len(curls)-1]) == sameURL {
		d.CanonicalURL = curl // target of the redirect from the page's URL
	}
	p := r.d.Page(d)
	p.Version = version
	return p, nil
}

// parity reports a Note if the validators in a list and of a document differ.
func (r *tctReader) parity(murl, version string) {
	listed, ok := r.listed.Get(murl)
	if ok && listed != "" && version != "" && !millrace.SameVersion(listed, version) {
		r.Note(r.d.RuleNames.Parity, murl, "the list has "+kit.Short(listed)+", the document "+kit.Short(version))
	}
}

// checkTarget checks that a document refers to the requested page.
func (r *tctReader) checkTarget(murl, what, to string, curls []string) error {
	best := otherURL
	for _, c := range curls {
		best = min(best, compareURLs(to, c))
	}
	switch best {
	case otherURL:
		return r.FormatError(murl, r.d.RuleNames.CanonicalLink, fmt.Sprintf("%s leads to %s, not to %s", what, to, curls[0]), nil)
	case nearURL:
		r.Note(r.d.RuleNames.CanonicalLink, murl, fmt.Sprintf("%s is %s, the page is %s", what, to, curls[0]))
	}
	return nil
}
