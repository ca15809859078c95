package tct

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol/kit"
)

// otherTag is an ETag of the right form that no document has.
const otherTag = `"sha256-0000000000000000000000000000000000000000000000000000000000000000"`

// opaqueTag gives the ETag of a response without W/ and quotes.
func opaqueTag(r *check.Response) string {
	return strings.Trim(strings.TrimPrefix(r.Header.Get("ETag"), "W/"), `"`)
}

// ask requests a page's M-URL with fields, which are names and values.
func (s *siteContext) ask(ctx context.Context, p *seenPage, fields ...string) (*check.Response, error) {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return s.Do(ctx, http.MethodGet, p.MURL, h)
}

// holds returns the 304 to the tag, nil if there is another answer: what the finer
// rules about conditional requests (RFC 9110, section 13) build on.
func (s *siteContext) holds(ctx context.Context, p *seenPage) (*check.Response, error) {
	if !p.OK() || p.Tag == "" {
		return nil, nil
	}
	resp, err := s.ask(ctx, p, "If-None-Match", `"`+p.Tag+`"`)
	if err != nil || resp.Status != http.StatusNotModified {
		return nil, err
	}
	return resp, nil
}

// checkNotModified checks that the present tag is answered with 304.
func checkNotModified(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if !p.OK() || p.Tag == "" {
		return false, nil
	}
	resp, err := s.ask(ctx, p, "If-None-Match", `"`+p.Tag+`"`)
	if err != nil {
		return false, err
	}
	if resp.Status == http.StatusOK && opaqueTag(resp) != p.Tag {
		return false, nil // the page, or its tag, has changed since
	}
	if resp.Status != http.StatusNotModified {
		fail(p.MURL, resp.Said()+` to If-None-Match: "`+p.Tag+`"`, "304 Not Modified")
	}
	return true, nil
}

// checkTagInList checks that a list of tags with the present one is answered with 304.
func checkTagInList(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	return s.matches(ctx, p, otherTag+`, "`+p.Tag+`"`, fail)
}

// checkAnyTag checks that * is answered with 304.
func checkAnyTag(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	return s.matches(ctx, p, "*", fail)
}

// checkWeakTag checks that the present tag as a weak one is answered with 304.
func checkWeakTag(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	return s.matches(ctx, p, `W/"`+p.Tag+`"`, fail)
}

// matches checks that one more form of If-None-Match gives 304.
func (s *siteContext) matches(ctx context.Context, p *seenPage, value string, fail check.Fail) (bool, error) {
	if resp, err := s.holds(ctx, p); resp == nil {
		return false, err
	}
	resp, err := s.ask(ctx, p, "If-None-Match", value)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusNotModified {
		fail(p.MURL, resp.Said()+" to If-None-Match: "+value, "304 Not Modified")
	}
	return true, nil
}

// checkOtherTag checks that another tag is answered with 200, and with JSON if there was any.
func checkOtherTag(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if !p.OK() {
		return false, nil
	}
	resp, err := s.ask(ctx, p, "If-None-Match", otherTag)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusOK || resp.BodyErr != nil || json.Valid(p.Body) && !json.Valid(kit.TrimBOM(resp.Body)) {
		fail(p.MURL, resp.Said()+" to If-None-Match: "+otherTag, "200 OK and the JSON")
	}
	return true, nil
}

// checkPrecedence checks that the tag decides, whatever If-Modified-Since says.
func checkPrecedence(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if resp, err := s.holds(ctx, p); resp == nil {
		return false, err
	}
	if resp, err := s.ask(ctx, p, "If-None-Match", otherTag); err != nil || resp.Status != http.StatusOK {
		return false, err // checkOtherTag
	}
	since := p.Resp.Header.Get("Last-Modified")
	if since == "" {
		since = s.Now().UTC().Format(http.TimeFormat)
	}
	resp, err := s.ask(ctx, p, "If-None-Match", otherTag, "If-Modified-Since", since)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusOK {
		fail(p.MURL, resp.Said()+" to another tag with If-Modified-Since: "+since, "200 OK: the tag decides")
		return true, nil
	}
	const long = "Sun, 06 Nov 1994 08:49:37 GMT"
	resp, err = s.ask(ctx, p, "If-None-Match", `"`+p.Tag+`"`, "If-Modified-Since", long)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusNotModified {
		fail(p.MURL, resp.Said()+" to the present tag with If-Modified-Since: "+long, "304 Not Modified: the tag decides")
	}
	return true, nil
}

// Unmodified returns the 304 to the tag, and checks that it has the tag; nil if there
// is another answer.
func (s *siteContext) Unmodified(ctx context.Context, p *seenPage, fail check.Fail) (*check.Response, error) {
	resp, err := s.holds(ctx, p)
	if resp != nil && opaqueTag(resp) != p.Tag {
		fail(p.MURL, "304 with ETag: "+resp.Header.Get("ETag"), "ETag: "+p.Resp.Header.Get("ETag"))
	}
	return resp, err
}
