package edition

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// An exact document has one form for all requests.
func TestExact(t *testing.T) {
	d := &millrace.Document{
		Path: "/a.json", ETag: "sha256-" + canon.SHA256Hex([]byte(body)), DigestETag: true,
		Header: http.Header{"Content-Type": {"application/json"}, "Vary": {"Accept-Encoding"}},
		Write: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, body)
			return err
		},
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for _, accept := range []string{"gzip, br", "", "*;q=0, identity;q=1", "gzip;q=0"} {
			w := send(t, d, method, "Accept-Encoding", accept, "Range", "bytes=0-3")
			h := w.Header()
			if w.Code != http.StatusOK || h.Get("ETag") != `"`+d.ETag+`"` || h.Get("Content-Digest") != canon.Digest([]byte(body)) ||
				h.Get("Content-Length") != "880" || h.Get("Content-Encoding") != "" || h.Get("Accept-Ranges") != "none" {
				t.Errorf("%s with Accept-Encoding: %s: %d %v", method, accept, w.Code, h)
			}
			if got := w.Body.String(); method == http.MethodGet && got != body || method == http.MethodHead && got != "" {
				t.Errorf("%s with Accept-Encoding: %s: %d bytes", method, accept, len(got))
			}
		}
	}
	for _, accept := range []string{"identity;q=0", "gzip, *;q=0", "gzip, identity; q=0.000"} {
		if w := send(t, d, http.MethodGet, "Accept-Encoding", accept); w.Code != http.StatusNotAcceptable || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding: %s: %d %v", accept, w.Code, w.Header())
		}
	}
	if w := send(t, d, http.MethodGet, "If-None-Match", `"`+d.ETag+`"`); w.Code != http.StatusNotModified || strings.Contains(w.Header().Get("ETag"), "W/") {
		t.Errorf("If-None-Match: %d %v", w.Code, w.Header())
	}
}
