package fetch

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestReceived verifies that the count is of bytes on the wire, before decoding.
func TestReceived(t *testing.T) {
	text := strings.Repeat("the wheel turns ", 1000)
	packed := encode(t, text, "gzip")
	for _, r := range []struct {
		name         string
		resp         *http.Response
		content, got int
	}{
		{"plain", response(text), len(text), len(text)},
		{"gzip", response(packed, "Content-Encoding", "gzip"), len(text), len(packed)},
		{"claims to be gzip", response(text, "Content-Encoding", "gzip"), len(text), len(text)},
		{"empty", response(""), 0, 0},
		{"decoded by the transport", func() *http.Response { r := response(text); r.Uncompressed = true; return r }(), len(text), 0},
	} {
		body, err := Decode(r.resp)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, body); err != nil || n != int64(r.content) {
			t.Errorf("%s: %d bytes of content, %v", r.name, n, err)
		}
		if got := Received(body); got != int64(r.got) {
			t.Errorf("%s: %d bytes received, want %d", r.name, got, r.got)
		}
		_ = body.Close()
	}
	if n := Received(strings.NewReader(text)); n != 0 {
		t.Errorf("%d bytes of a body that was not decoded", n)
	}
}
