package webauth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// signedSite serves two signed documents through an intermediary.
type signedSite struct {
	*httptest.Server
	key   *Key
	clock *clock
	spoil func(http.Header, []byte) []byte // changes made by the intermediary; nil if none
}

func newSignedSite(t *testing.T) *signedSite {
	s := &signedSite{key: newTestKey(t, 1), clock: newClock()}
	mux := http.NewServeMux()
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	dir, err := NewDirectory(s.URL, []*Key{s.key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir.now = s.clock.now
	mux.Handle(DirectoryPath, dir)
	stamp := NewStamp(s.key, "/docs")
	stamp.now = s.clock.now
	mux.HandleFunc("/docs/", func(w http.ResponseWriter, r *http.Request) {
		body := []byte("the document at " + r.URL.RequestURI())
		h := w.Header()
		h.Set("Content-Type", "text/plain")
		h.Set("Content-Digest", canon.Digest(body))
		if strings.HasSuffix(r.URL.Path, "/plain") {
			_, _ = w.Write(body)
			return
		}
		input, value, _, err := stamp.Sign(strings.TrimPrefix(r.URL.RequestURI(), "/docs"), http.StatusOK, h)
		if err != nil {
			t.Error(err)
		}
		h["Signature-Input"], h["Signature"] = []string{input}, []string{value}
		if s.spoil != nil {
			body = s.spoil(h, body)
		}
		_, _ = w.Write(body)
	})
	return s
}

// read fetches a document as a reader that verifies signatures.
func (s *signedSite) read(t *testing.T, verifier *ResponseVerifier, path string) error {
	t.Helper()
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true, Check: verifier.Check}).HTTP()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := fetch.Do(t.Context(), client, req)
	if err != nil {
		return err
	}
	_, err = fetch.ReadBody(resp, 0)
	return err
}

func (s *signedSite) verifier() *ResponseVerifier {
	verifier := NewResponseVerifier(fetch.New(ClientOptions(&fetch.Options{AllowPrivate: true})).HTTP())
	verifier.now, verifier.dirs.now = s.clock.now, s.clock.now
	return verifier
}

func TestResponseVerifier(t *testing.T) {
	s := newSignedSite(t)
	verifier := s.verifier()
	for _, path := range []string{"/docs/a", "/docs/b?c=d%20e&f", "/docs/%2e%2Fx", "/docs/a"} {
		if err := s.read(t, verifier, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := s.read(t, verifier, "/docs/plain"); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(VerifyCounts{Verified: 4, Unsigned: 1, Keys: []string{s.key.ID()}}, verifier.Counts()); d != "" || verifier.Err() != nil {
		t.Errorf("%v (-want +got):\n%s", verifier.Err(), d)
	}
	if d := cmp.Diff(VerifyCounts{}, verifier.WithClient(http.DefaultClient).Counts()); d != "" {
		t.Errorf("a verifier with another client has earlier counts: %s", d)
	}
}

// TestResponseVerifierAttacks changes responses as an attacker between site and reader could.
func TestResponseVerifierAttacks(t *testing.T) {
	swap := func(h http.Header, name, from, to string) {
		h.Set(name, strings.Replace(h.Get(name), from, to, 1))
	}
	for name, tt := range map[string]struct {
		spoil func(http.Header, []byte) []byte
		pass  time.Duration
		want  VerifyCounts
		err   bool // the document is refused
	}{
		"another body": {spoil: func(_ http.Header, _ []byte) []byte { return []byte("lies") }, want: VerifyCounts{Invalid: 1}, err: true},
		"no body":      {spoil: func(_ http.Header, _ []byte) []byte { return nil }, want: VerifyCounts{Invalid: 1}, err: true},
		"with its digest": {
			spoil: func(h http.Header, _ []byte) []byte {
				h.Set("Content-Digest", canon.Digest([]byte("lies")))
				return []byte("lies")
			}, want: VerifyCounts{Invalid: 1}, err: true,
		},
		"another type":     {spoil: func(h http.Header, b []byte) []byte { h.Set("Content-Type", "text/html"); return b }, want: VerifyCounts{Invalid: 1}, err: true},
		"without a digest": {spoil: func(h http.Header, b []byte) []byte { h.Del("Content-Digest"); return b }, want: VerifyCounts{Invalid: 1}, err: true},
		"less covered": {spoil: func(h http.Header, b []byte) []byte {
			swap(h, "Signature-Input", `"content-digest" `, "")
			return b
		}, want: VerifyCounts{Invalid: 1}, err: true},
		"for a path": {spoil: func(h http.Header, b []byte) []byte {
			swap(h, "Signature-Input", `"@path";req `, "")
			return b
		}, want: VerifyCounts{Invalid: 1}, err: true},
		"made newer": {spoil: func(h http.Header, b []byte) []byte {
			swap(h, "Signature-Input", "expires=18", "expires=19")
			return b
		}, want: VerifyCounts{Invalid: 1}, err: true},
		"an old signature":           {pass: -provenFor - verifySkew - time.Second, want: VerifyCounts{Invalid: 1}, err: true},
		"a slightly old signature":   {pass: -provenFor - verifySkew, want: VerifyCounts{Verified: 1}},
		"a signature of the future":  {pass: verifySkew + time.Second, want: VerifyCounts{Invalid: 1}, err: true},
		"a signature of another key": {spoil: func(h http.Header, b []byte) []byte { swap(h, "Signature-Input", `keyid="`, `keyid="x`); return b }, want: VerifyCounts{Unverified: 1}},
		"stripped": {spoil: func(h http.Header, b []byte) []byte {
			h.Del("Signature")
			h.Del("Signature-Input")
			return b
		}, want: VerifyCounts{Unsigned: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignedSite(t)
			verifier := s.verifier()
			// The site's clock is ahead of the reader's, or behind it.
			site := s.clock.now()
			verifier.now = func() time.Time { return site.Add(-tt.pass) }
			s.spoil = tt.spoil
			err := s.read(t, verifier, "/docs/a")
			if (err != nil) != tt.err || err != nil && !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("got %v", err)
			}
			got := verifier.Counts()
			got.Keys = nil
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
			if no, is := errors.AsType[*VerifyError](verifier.Err()); is != (tt.want.Invalid > 0) || is && !strings.HasPrefix(no.URL, s.URL) {
				t.Errorf("Err = %v", verifier.Err())
			}
		})
	}
}

// An attacker replaces a document with another one and its valid signature.
func TestResponseVerifierSwapped(t *testing.T) {
	s := newSignedSite(t)
	stamp := NewStamp(s.key, "")
	stamp.now = s.clock.now
	s.spoil = func(h http.Header, _ []byte) []byte {
		body := []byte("the document at /docs/b")
		h.Set("Content-Digest", canon.Digest(body))
		input, value, _, err := stamp.Sign("/docs/b", http.StatusOK, h)
		if err != nil {
			t.Error(err)
		}
		h["Signature-Input"], h["Signature"] = []string{input}, []string{value}
		return body
	}
	verifier := s.verifier()
	if err := s.read(t, verifier, "/docs/b"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/docs/a", "/docs/b?x=1", "/docs/"} {
		if err := s.read(t, verifier, path); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if no, ok := errors.AsType[*VerifyError](verifier.Err()); !ok || no.URL != s.URL+"/docs/a" {
		t.Errorf("Err = %v", verifier.Err())
	}
}

// Responses without the content of a document are not counted.
func TestResponseVerifierOthers(t *testing.T) {
	s := newSignedSite(t)
	verifier := s.verifier()
	req := httptest.NewRequest(http.MethodGet, s.URL+"/docs/a", http.NoBody)
	for _, resp := range []*http.Response{
		{StatusCode: http.StatusNotModified, Request: req},
		{StatusCode: http.StatusPartialContent, Request: req},
		{StatusCode: http.StatusNotFound, Request: req},
		{StatusCode: http.StatusOK, Request: httptest.NewRequest(http.MethodHead, s.URL, http.NoBody)},
		{StatusCode: http.StatusOK},
	} {
		if _, err := verifier.Check(resp); err != nil {
			t.Error(err)
		}
	}
	// Signatures with another tag are not counted either.
	for _, input := range []string{`a=("content-digest");tag="other"`, "a=", `a=("@status");alg="hmac-sha256";tag="millrace"`} {
		resp := &http.Response{StatusCode: http.StatusOK, Request: req, Header: http.Header{
			"Signature-Input": {input}, "Signature": {"a=:" + strings.Repeat("A", 86) + "==:"},
		}}
		if _, err := verifier.Check(resp); err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff(VerifyCounts{Unsigned: 3}, verifier.Counts()); d != "" {
		t.Error(d)
	}
}
