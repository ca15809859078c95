package kit

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
)

// Probe is a document that rules request conditionally (RFC 9110, section 13).
type Probe struct {
	*check.Target
	URL    string
	Header http.Header     // header of all requests
	First  *check.Response // response to the first request
	What   string          // name of the document in findings, such as "list"
	Tag    string          // ETag of the document; may be empty
	Other  string          // an ETag that the document does not have
}

// Condition checks one requirement on conditional requests. It reports whether the requirement
// applies to the document. [BothConditions], [TagForms], [Precedence] and [NotModifiedFields] apply
// only to documents with a 304 for their tag, so that one fault causes one finding.
type Condition = func(ctx context.Context, p *Probe, fail check.Fail) (bool, error)

// Probes returns a check that tests a condition on documents.
func Probes[S any](of func(S) []*Probe, f Condition) check.SiteCheck[S] {
	return check.Each(of, func(ctx context.Context, _ S, p *Probe, fail check.Fail) (bool, error) { return f(ctx, p, fail) })
}

// Fields of conditional requests.
const (
	noneMatch     = "If-None-Match"
	modifiedSince = "If-Modified-Since"
)

// longAgo is a date before the last change of any document.
const longAgo = "Sun, 06 Nov 1994 08:49:37 GMT"

// OpaqueTag returns the ETag of a response without W/ and quotes.
func OpaqueTag(r *check.Response) string {
	return strings.Trim(strings.TrimPrefix(r.Header.Get("ETag"), "W/"), `"`)
}

// Modified returns the Last-Modified of the document.
func (p *Probe) Modified() string { return p.First.Header.Get("Last-Modified") }

// ask requests the document with header fields, which are pairs of a name and a value. If a value
// is "", ask sends no request, and the response is nil.
func (p *Probe) ask(ctx context.Context, fields ...string) (*check.Response, error) {
	h := http.Header{}
	maps.Copy(h, p.Header)
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] == "" {
			return nil, nil
		}
		h.Set(fields[i], fields[i+1])
	}
	return p.Do(ctx, http.MethodGet, p.URL, h)
}

// NotModified sends a conditional request with the fields. It returns the response if its status is
// 304, otherwise nil.
func (p *Probe) NotModified(ctx context.Context, fields ...string) (*check.Response, error) {
	resp, err := p.ask(ctx, fields...)
	if resp == nil || resp.Status != http.StatusNotModified {
		return nil, err
	}
	return resp, nil
}

// unchanged checks that the response to a request with the fields is 304, unless the document has
// changed.
func (p *Probe) unchanged(ctx context.Context, fail check.Fail, fields ...string) (bool, error) {
	resp, err := p.ask(ctx, fields...)
	switch {
	case resp == nil:
		return false, err
	case resp.Status == http.StatusOK && (OpaqueTag(resp) != OpaqueTag(p.First) ||
		slices.Contains(fields, modifiedSince) && resp.Header.Get("Last-Modified") != p.Modified()):
		return false, nil
	case resp.Status != http.StatusNotModified:
		sent := ""
		for i := 0; i < len(fields); i += 2 {
			sent += " " + fields[i] + ": " + fields[i+1]
		}
		fail(p.URL, resp.StatusText()+" to"+sent, "304 Not Modified")
	}
	return true, nil
}

// changed checks that the response to a false condition is 200.
func (p *Probe) changed(ctx context.Context, fail check.Fail, name, value string) (bool, error) {
	resp, err := p.ask(ctx, name, value)
	if err != nil {
		return false, err
	}
	lost := p.First.OK() && !resp.OK() || len(p.First.Body) > 0 && len(resp.Body) == 0 || json.Valid(p.First.Body) && !json.Valid(resp.Body)
	if resp.Status != http.StatusOK || lost {
		fail(p.URL, resp.StatusText()+" to "+name+": "+value, "200 OK and the "+p.What)
	}
	return true, nil
}

// IfNoneMatch checks that the response to If-None-Match with the tag is 304.
func IfNoneMatch(ctx context.Context, p *Probe, fail check.Fail) (bool, error) {
	return p.unchanged(ctx, fail, noneMatch, p.Tag)
}

// IfModifiedSince checks that the response to If-Modified-Since with the date is 304.
func IfModifiedSince(ctx context.Context, p *Probe, fail check.Fail) (bool, error) {
	return p.unchanged(ctx, fail, modifiedSince, p.Modified())
}

// BothConditions checks that the response to a request with both the tag and the date is 304, if
// the response to each of them alone is 304.
func BothConditions(ctx context.Context, p *Probe, fail check.Fail) (bool, error) {
	if resp, err := p.NotModified(ctx, noneMatch, p.Tag); resp == nil {
		return false, err
	}
	if resp, err := p.NotModified(ctx, modifiedSince, p.Modified()); resp == nil {
		return false, err
	}
	return p.unchanged(ctx, fail, noneMatch, p.Tag, modifiedSince, p.Modified())
}

// TagForms checks that the response is 304 for each form of If-None-Match that matches the tag.
func TagForms(forms ...func(p *Probe) string) Condition {
	return func(ctx context.Context, p *Probe, fail check.Fail) (bool, error) {
		if resp, err := p.NotModified(ctx, noneMatch, p.Tag); resp == nil {
			return false, err
		}
		for _, form := range forms {
			if ok, err := p.unchanged(ctx, fail, noneMatch, form(p)); !ok {
				return false, err
			}
		}
		return true, nil
	}
}

// TagList returns a list of two tags, one of which matches.
func TagList(p *Probe) string { return p.Other + ", " + p.Tag }

// AnyTag returns "*", which matches any tag.
func AnyTag(*Probe) string { return "*" }

// WeakTag returns the tag as a weak one.
func WeakTag(p *Probe) string {
	if p.Tag[0] != '"' {
		return p.Tag // already weak
	}
	return "W/" + p.Tag
}

// OtherTag checks that the response to If-None-Match with another tag is 200.
func OtherTag(ctx context.Context, p *Probe, fail check.Fail) (bool, error) {
	return p.changed(ctx, fail, noneMatch, p.Other)
}

// OtherDate checks that the response to If-Modified-Since with an earlier date is 200.
func OtherDate(ctx context.Context, p *Probe, fail check.Fail) (bool, error) {
	if p.Modified() == "" {
		return false, nil
	}
	return p.changed(ctx, fail, modifiedSince, longAgo)
}

// Precedence checks that the tag takes precedence over If-Modified-Since.
func Precedence(ctx context.Context, p *Probe, fail check.Fail) (bool, error) {
	if resp, err := p.NotModified(ctx, noneMatch, p.Tag); resp == nil {
		return false, err
	}
	if resp, err := p.ask(ctx, noneMatch, p.Other); err != nil || resp.Status != http.StatusOK {
		return false, err // OtherTag reports it
	}
	since := p.Modified()
	if since == "" {
		since = p.Now().UTC().Format(http.TimeFormat)
	}
	for _, c := range []struct {
		tag, which, since, want string
		status                  int
	}{
		{p.Other, "another", since, "200 OK", http.StatusOK},
		{p.Tag, "the current", longAgo, "304 Not Modified", http.StatusNotModified},
	} {
		resp, err := p.ask(ctx, noneMatch, c.tag, modifiedSince, c.since)
		if err != nil {
			return false, err
		}
		if resp.Status != c.status {
			fail(p.URL, resp.StatusText()+" to "+c.which+" tag with If-Modified-Since: "+c.since, c.want+": the tag takes precedence")
			break
		}
	}
	return true, nil
}

// NotModifiedFields checks that a 304 has the tag and the named fields: all of them if all is
// set, otherwise those that the 200 has.
func NotModifiedFields(all bool, names ...string) Condition {
	return func(ctx context.Context, p *Probe, fail check.Fail) (bool, error) {
		resp, err := p.NotModified(ctx, noneMatch, p.Tag)
		if resp == nil {
			return false, err
		}
		if OpaqueTag(resp) != OpaqueTag(p.First) {
			fail(p.URL, "304 with ETag: "+resp.Header.Get("ETag"), "ETag: "+p.First.Header.Get("ETag"))
		}
		for _, name := range names {
			if want := p.First.Header.Get(name); (all || want != "") && resp.Header.Get(name) == "" {
				fail(p.URL, "304 without "+name, strings.TrimSuffix(name+": "+want, ": "))
			}
		}
		return true, nil
	}
}
