package tct

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// answers is a transport that answers each URL with one body.
type answers map[string]func() io.Reader

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {contentType}}
	if r.URL.Path == "/" {
		h.Add("Link", `</list>; rel="index"; type="application/json"`)
	}
	body := a[r.URL.Path]
	if body == nil {
		body = func() io.Reader { return strings.NewReader("") }
	}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(body()), ContentLength: -1, Request: r}, nil
}

func plainBody(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

func collect(t *testing.T, src millrace.Source) (puts []millrace.Change, skips []*millrace.SkipError, marks int, err error) {
	t.Helper()
	for c, e := range src.Changes(t.Context(), "") {
		var skip *millrace.SkipError
		switch {
		case errors.As(e, &skip):
			skips = append(skips, skip)
		case e != nil:
			err = e
		case c.Kind == millrace.KindCheckpoint:
			marks++
		default:
			puts = append(puts, c)
		}
	}
	return puts, skips, marks, err
}
