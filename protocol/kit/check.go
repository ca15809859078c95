package kit

import (
	"bytes"
	"net/url"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/weblink"
)

// HeadOf is [ReadHead] for a response that a rule looks at.
func HeadOf(r *check.Response) weblink.Head {
	base, err := url.Parse(r.URL)
	if err != nil {
		return weblink.Head{}
	}
	if !weblink.IsHTML(r.Header) {
		return headOf(r.Header, base, nil)
	}
	return headOf(r.Header, base, bytes.NewReader(r.Body))
}

// Links returns the links of a response of status 2xx: of its Link fields, then of
// its HTML.
func Links(r *check.Response) []weblink.Link {
	if r.Status < 200 || r.Status > 299 {
		return nil
	}
	return HeadOf(r).Links
}
