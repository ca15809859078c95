package tct

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

// Status gives the status of a response, such as "404 Not Found".
func Status(r *check.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)))
}

// Validator is an M-URL with the ETag of a 200 of it, for the rules that ask for
// it on conditions (RFC 9110, section 13). Each rule reports whether it is about
// this M-URL.
type Validator struct {
	Target *check.Target
	URL    string          // of the M-URL
	Resp   *check.Response // the 200
	Tag    string          // its ETag without W/ and quotes; "" = it has none
}

// ask sends fields, which are names and values.
func (v *Validator) ask(ctx context.Context, fields ...string) (*check.Response, error) {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return v.Target.Do(ctx, http.MethodGet, v.URL, h)
}

// Holds gives the 304 to the tag, nil if there is another answer: what the finer
// rules build on.
func (v *Validator) Holds(ctx context.Context) (*check.Response, error) {
	if v.Tag == "" {
		return nil, nil
	}
	resp, err := v.ask(ctx, "If-None-Match", `"`+v.Tag+`"`)
	if err != nil || resp.Status != http.StatusNotModified {
		return nil, err
	}
	return resp, nil
}

// NotModified checks that the present tag is answered with 304.
func (v *Validator) NotModified(ctx context.Context, fail check.Fail) (bool, error) {
	if v.Tag == "" {
		return false, nil
	}
	resp, err := v.ask(ctx, "If-None-Match", `"`+v.Tag+`"`)
	if err != nil {
		return false, err
	}
	if resp.Status == http.StatusOK && Opaque(resp) != v.Tag {
		return false, nil // the page, or its tag, has changed since
	}
	if resp.Status != http.StatusNotModified {
		fail(v.URL, Status(resp)+` to If-None-Match: "`+v.Tag+`"`, "304 Not Modified")
	}
	return true, nil
}

// InList checks that so is a list of tags with the present one.
func (v *Validator) InList(ctx context.Context, fail check.Fail) (bool, error) {
	return v.matches(ctx, OtherTag+`, "`+v.Tag+`"`, fail)
}

// Any checks that so is *.
func (v *Validator) Any(ctx context.Context, fail check.Fail) (bool, error) {
	return v.matches(ctx, "*", fail)
}

// Weak checks that so is the present tag as a weak one.
func (v *Validator) Weak(ctx context.Context, fail check.Fail) (bool, error) {
	return v.matches(ctx, `W/"`+v.Tag+`"`, fail)
}

// matches checks that one more form of If-None-Match gives 304.
func (v *Validator) matches(ctx context.Context, value string, fail check.Fail) (bool, error) {
	if resp, err := v.Holds(ctx); resp == nil {
		return false, err
	}
	resp, err := v.ask(ctx, "If-None-Match", value)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusNotModified {
		fail(v.URL, Status(resp)+" to If-None-Match: "+value, "304 Not Modified")
	}
	return true, nil
}

// Other checks that another tag is answered with 200, and with JSON if there was any.
func (v *Validator) Other(ctx context.Context, fail check.Fail) (bool, error) {
	resp, err := v.ask(ctx, "If-None-Match", OtherTag)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusOK || resp.BodyErr != nil || isJSON(v.Resp.Body) && !isJSON(resp.Body) {
		fail(v.URL, Status(resp)+" to If-None-Match: "+OtherTag, "200 OK and the JSON")
	}
	return true, nil
}

func isJSON(body []byte) bool { return json.Valid(bytes.TrimPrefix(body, []byte("\uFEFF"))) }

// Decides checks that the tag decides, whatever If-Modified-Since says.
func (v *Validator) Decides(ctx context.Context, fail check.Fail) (bool, error) {
	if resp, err := v.Holds(ctx); resp == nil {
		return false, err
	}
	if resp, err := v.ask(ctx, "If-None-Match", OtherTag); err != nil || resp.Status != http.StatusOK {
		return false, err // Other
	}
	since := v.Resp.Header.Get("Last-Modified")
	if since == "" {
		since = v.Target.Now().UTC().Format(http.TimeFormat)
	}
	resp, err := v.ask(ctx, "If-None-Match", OtherTag, "If-Modified-Since", since)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusOK {
		fail(v.URL, Status(resp)+" to another tag with If-Modified-Since: "+since, "200 OK: the tag decides")
		return true, nil
	}
	const long = "Sun, 06 Nov 1994 08:49:37 GMT"
	resp, err = v.ask(ctx, "If-None-Match", `"`+v.Tag+`"`, "If-Modified-Since", long)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusNotModified {
		fail(v.URL, Status(resp)+" to the present tag with If-Modified-Since: "+long, "304 Not Modified: the tag decides")
	}
	return true, nil
}

// Keeps gives the 304 to the tag as Holds does, which must have the tag itself.
func (v *Validator) Keeps(ctx context.Context, fail check.Fail) (*check.Response, error) {
	resp, err := v.Holds(ctx)
	if resp != nil && Opaque(resp) != v.Tag {
		fail(v.URL, "304 with ETag: "+resp.Header.Get("ETag"), "ETag: "+v.Resp.Header.Get("ETag"))
	}
	return resp, err
}
