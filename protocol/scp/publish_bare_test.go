package scp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// status returns the status of a response, or the status for the error, and the header.
func (p *published) status(t *testing.T, path, known string) (int, http.Header) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
	if known != "" {
		r.Header.Set("If-None-Match", known)
	}
	done, err := p.server.Serve(w, r)
	if err != nil {
		return millrace.Status(err), w.Header()
	}
	if !done {
		return http.StatusNotFound, w.Header()
	}
	return w.Code, w.Header()
}

// Collections without a checksum are verified, read and checked. The only finding is that the
// checksum, a SHOULD, is absent.
func TestNoChecksum(t *testing.T) {
	t.Parallel()
	p := publishing(t, &protocol.PublisherOptions{Own: []any{&PublisherOptions{NoChecksum: true}}})
	p.put(t, handbook()...)
	text := p.publish(t)
	tags := map[string]bool{}
	for _, path := range p.server.Current().ArtifactPaths() {
		code, h := p.status(t, path, "")
		body := p.get(t, path)
		if tag := `"sha256:` + canon.SHA256Hex([]byte(body)) + `"`; code != http.StatusOK || h.Get("ETag") != tag {
			t.Errorf("%s: %d, ETag %s, want %s", path, code, h.Get("ETag"), tag)
		}
		if code, _ := p.status(t, path, h.Get("ETag")); code != http.StatusNotModified {
			t.Errorf("%s: status %d for its own ETag", path, code)
		}
		tags[h.Get("ETag")] = true
		c, err := Open(strings.NewReader(body), int64(len(body)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := c.Verify(t.Context()); err != nil || v.Checksum != "none" || v.Skipped > 0 || v.Pages == 0 {
			t.Errorf("%s: %+v, %v", path, v, err)
		}
		if c.Coding() == "" && strings.Contains(body, "checksum") {
			t.Errorf("%s starts with %.200s", path, body)
		}
	}
	if len(tags) != len(p.server.Current().ArtifactPaths()) || len(elements(text, "collection", "all")) == 0 {
		t.Errorf("%d different ETags for %d files", len(tags), len(p.server.Current().ArtifactPaths()))
	}

	client := clientOf(atServer{p, t})
	n := 0
	for c, err := range NewReader(client, "https://x.test/", &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Now: func() time.Time { return p.now }}}).Changes(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == millrace.Put {
			n++
		}
	}
	if n != len(handbook())/2 {
		t.Errorf("%d pages were read", n)
	}
	target, err := check.NewTarget("https://x.test/", client, &check.TargetOptions{Decode: fetch.Decode, Now: func() time.Time { return p.now }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := check.Run(context.WithoutCancel(t.Context()), target, []check.Suite{{Name: Name, Rules: Rules()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.Rule != Name+"/checksum/present" }) || r.Protocols[Name].Must.Fail > 0 || len(r.Findings) == 0 {
		protocoltest.Explain(t, r)
	}
}

// A collection with a deleted page returns 410 until its declared expiry. A collection that
// was only replaced remains available.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	p := publishingEvery(t, daily, nil)
	p.put(t, handbook()...)
	p.publish(t)
	first := p.server.Current().ArtifactPaths()
	p.now = p.now.Add(time.Hour)
	p.put(t, "/blog/0", "changed")
	p.publish(t)
	second := p.server.Current().ArtifactPaths()
	for _, path := range first {
		if code, _ := p.status(t, path, ""); code != http.StatusOK {
			t.Errorf("%s, which was replaced: %d", path, code)
		}
	}
	p.now = p.now.Add(time.Hour)
	p.put(t, "/blog/0", "")
	p.publish(t)
	gone := 0
	for _, path := range append(first, second...) {
		if slices.Contains(p.server.Current().ArtifactPaths(), path) {
			continue
		}
		gone++
		if code, _ := p.status(t, path, "*"); code != http.StatusGone {
			t.Errorf("%s, which had the page: %d", path, code)
		}
	}
	if gone < 6 {
		t.Errorf("%d files were removed", gone)
	}
	if code, _ := p.status(t, "/scp/all-0123456789abcdef.scp", ""); code != http.StatusNotFound {
		t.Errorf("a file that never existed: %d", code)
	}
	p.now = p.now.Add(24 * time.Hour)
	p.put(t, "/blog/1", "another day")
	p.publish(t)
	if code, _ := p.status(t, first[0], ""); code != http.StatusGone {
		t.Errorf("before it expires: %d", code)
	}
	p.now = p.now.Add(48 * time.Hour)
	p.put(t, "/blog/1", "after it has expired")
	p.publish(t)
	if code, _ := p.status(t, first[0], ""); code != http.StatusNotFound {
		t.Errorf("after it has expired: %d", code)
	}
}
