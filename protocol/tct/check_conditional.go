package tct

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/millrace/millrace/check"
)

// OtherTag is an ETag of the right form that no document has.
const OtherTag = `"sha256-0000000000000000000000000000000000000000000000000000000000000000"`

// Opaque gives the ETag of a response without W/ and quotes.
func Opaque(r *check.Response) string {
	return strings.Trim(strings.TrimPrefix(r.Header.Get("ETag"), "W/"), `"`)
}

// ask requests a page's M-URL with fields, which are names and values.
func (s *SiteContext) ask(ctx context.Context, p *SeenPage, fields ...string) (*check.Response, error) {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return s.Target.Do(ctx, http.MethodGet, p.MURL, h)
}

// holds returns the 304 to the tag, nil if there is another answer: what the finer
// rules about conditional requests (RFC 9110, section 13) build on.
func (s *SiteContext) holds(ctx context.Context, p *SeenPage) (*check.Response, error) {
	if !p.OK() || p.Tag == "" {
		return nil, nil
	}
	resp, err := s.ask(ctx, p, "If-None-Match", `"`+p.Tag+`"`)
	if err != nil || resp.Status != http.StatusNotModified {
		return nil, err
	}
	return resp, nil
}

// CheckNotModified checks that the present tag is answered with 304.
func CheckNotModified(ctx context.Context, s *SiteContext, p *SeenPage, fail check.Fail) (bool, error) {
	if !p.OK() || p.Tag == "" {
		return false, nil
	}
	resp, err := s.ask(ctx, p, "If-None-Match", `"`+p.Tag+`"`)
	if err != nil {
		return false, err
	}
	if resp.Status == http.StatusOK && Opaque(resp) != p.Tag {
		return false, nil // the page, or its tag, has changed since
	}
	if resp.Status != http.StatusNotModified {
		fail(p.MURL, resp.Said()+` to If-None-Match: "`+p.Tag+`"`, "304 Not Modified")
	}
	return true, nil
}

// CheckTagInList checks that a list of tags with the present one is answered with 304.
func CheckTagInList(ctx context.Context, s *SiteContext, p *SeenPage, fail check.Fail) (bool, error) {
	return s.matches(ctx, p, OtherTag+`, "`+p.Tag+`"`, fail)
}

// CheckAnyTag checks that * is answered with 304.
func CheckAnyTag(ctx context.Context, s *SiteContext, p *SeenPage, fail check.Fail) (bool, error) {
	return s.matches(ctx, p, "*", fail)
}

// CheckWeakTag checks that the present tag as a weak one is answered with 304.
func CheckWeakTag(ctx context.Context, s *SiteContext, p *SeenPage, fail check.Fail) (bool, error) {
	return s.matches(ctx, p, `W/"`+p.Tag+`"`, fail)
}

// matches checks that one more form of If-None-Match gives 304.
func (s *SiteContext) matches(ctx context.Context, p *SeenPage, value string, fail check.Fail) (bool, error) {
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

// CheckOtherTag checks that another tag is answered with 200, and with JSON if there was any.
func CheckOtherTag(ctx context.Context, s *SiteContext, p *SeenPage, fail check.Fail) (bool, error) {
	if !p.OK() {
		return false, nil
	}
	resp, err := s.ask(ctx, p, "If-None-Match", OtherTag)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusOK || resp.BodyErr != nil || json.Valid(p.Body) && !json.Valid(trimBOM(resp.Body)) {
		fail(p.MURL, resp.Said()+" to If-None-Match: "+OtherTag, "200 OK and the JSON")
	}
	return true, nil
}

// CheckPrecedence checks that the tag decides, whatever If-Modified-Since says.
func CheckPrecedence(ctx context.Context, s *SiteContext, p *SeenPage, fail check.Fail) (bool, error) {
	if resp, err := s.holds(ctx, p); resp == nil {
		return false, err
	}
	if resp, err := s.ask(ctx, p, "If-None-Match", OtherTag); err != nil || resp.Status != http.StatusOK {
		return false, err // CheckOtherTag
	}
	since := p.Resp.Header.Get("Last-Modified")
	if since == "" {
		since = s.Target.Now().UTC().Format(http.TimeFormat)
	}
	resp, err := s.ask(ctx, p, "If-None-Match", OtherTag, "If-Modified-Since", since)
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
func (s *SiteContext) Unmodified(ctx context.Context, p *SeenPage, fail check.Fail) (*check.Response, error) {
	resp, err := s.holds(ctx, p)
	if resp != nil && Opaque(resp) != p.Tag {
		fail(p.MURL, "304 with ETag: "+resp.Header.Get("ETag"), "ETag: "+p.Resp.Header.Get("ETag"))
	}
	return resp, err
}
