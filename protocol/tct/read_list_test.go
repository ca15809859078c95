package tct

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// answers is a transport that returns one body for each URL.
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

// The modification times of list items, in the form of each draft.
func TestListTimes(t *testing.T) {
	for _, c := range []struct {
		of         *draft
		list, item string
	}{
		{draft03, `"profile":"` + listProfile03 + `","version":2`, "lastModified"},
		{draft03, `"profile":"tct-1","version":2`, "modified"},
	} {
		list := fmt.Sprintf(`{"items":[{"cUrl":"https://e.com/","mUrl":"https://e.com/m",%q:"2026-08-01T10:00:00Z"}],%s}`, c.item, c.list)
		puts, _, _, err := collect(t, c.of.Protocol().NewReader(&http.Client{Transport: answers{"/list": plainBody(list)}}, "https://e.com/", nil))
		if err != nil || len(puts) != 1 || !puts[0].Time.Equal(time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %+v (%v)", list, puts, err)
		}
	}
}

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
