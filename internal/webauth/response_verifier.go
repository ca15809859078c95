package webauth

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// verifySkew is the maximum difference between the clocks of a reader and a site.
const verifySkew = time.Hour

// patience is the maximum time that a reader waits for a key, because the queue of a slow host may
// be long.
const patience = 5 * time.Minute

// VerifyCounts counts the signatures of a site's responses.
type VerifyCounts struct {
	Verified   int64    `json:"verified"`             // valid signatures
	Invalid    int64    `json:"invalid,omitempty"`    // signatures that do not match, or are outside their validity period
	Unverified int64    `json:"unverified,omitempty"` // signatures whose key the site does not publish, or whose key could not be fetched
	Unsigned   int64    `json:"unsigned,omitempty"`   // responses without a signature
	Keys       []string `json:"keys,omitempty"`       // thumbprints of the keys of valid signatures
}

// ResponseVerifier verifies the signatures of responses with the keys that their site
// publishes. It is safe for concurrent use.
type ResponseVerifier struct {
	dirs *directories
	now  func() time.Time

	mu    sync.Mutex
	count VerifyCounts
	keys  map[string]bool
	first error
}

// NewResponseVerifier returns a verifier. client fetches the key directories of sites. If it is nil,
// no signature can be verified.
func NewResponseVerifier(client *http.Client) *ResponseVerifier {
	return &ResponseVerifier{dirs: newDirectories(client), now: time.Now, keys: make(map[string]bool)}
}

// WithClient returns a verifier with zero counts that shares the cached keys and has its own client.
func (s *ResponseVerifier) WithClient(client *http.Client) *ResponseVerifier {
	return &ResponseVerifier{dirs: &directories{fetch.NoRedirects(client), patience, s.dirs.directoryCache}, now: s.now, keys: make(map[string]bool)}
}

// VerifyError reports an invalid signature of a response. It wraps [millrace.ErrInvalid].
type VerifyError struct {
	URL string
	Err error
}

// Error returns "URL: invalid signature: cause".
func (e *VerifyError) Error() string { return e.URL + ": invalid signature: " + e.Err.Error() }

// Unwrap returns [millrace.ErrInvalid] and the cause.
func (e *VerifyError) Unwrap() []error { return []error{millrace.ErrInvalid, e.Err} }

// Check verifies the signature of a response. The reader of the body must compare the body with
// Content-Digest and, on a mismatch, call broken unless broken is nil. The error is a
// [*VerifyError] if the signature is invalid. It is nil for a response without a signature, and for
// a signature whose key cannot be fetched.
func (s *ResponseVerifier) Check(resp *http.Response) (broken func(), err error) {
	if resp.StatusCode != http.StatusOK || resp.Request == nil || resp.Request.Method != http.MethodGet && resp.Request.Method != "" {
		return nil, nil
	}
	url := resp.Request.URL.Redacted()
	of, err := stampOf(resp.Header)
	switch {
	case err != nil:
		return nil, s.fail(url, err)
	case of == nil:
		s.add(func(c *VerifyCounts) { c.Unsigned++ })
		return nil, nil
	}
	u := resp.Request.URL
	key, err := s.dirs.key(resp.Request.Context(), canon.Origin(u.Scheme+"://"+u.Host+"/")+DirectoryPath, of.keyID)
	if err != nil {
		s.add(func(c *VerifyCounts) { c.Unverified++ })
		return nil, nil //nolint:nilerr // an unknown key does not show that the bytes are wrong
	}
	now := s.now()
	switch {
	case of.created.After(now.Add(verifySkew)):
		err = fmt.Errorf("%w: created at %s, in the future", millrace.ErrInvalid, of.created.UTC().Format(time.RFC3339))
	case !of.expires.IsZero() && now.After(of.expires.Add(verifySkew)):
		err = fmt.Errorf("%w: expired at %s", millrace.ErrInvalid, of.expires.UTC().Format(time.RFC3339))
	case !digested(resp.Header):
		err = fmt.Errorf("%w: Content-Digest has no SHA-256 or SHA-512 (RFC 9530)", millrace.ErrInvalid)
	default:
		err = of.verify(&message{status: resp.StatusCode, field: resp.Header, req: requestMessage(resp.Request, "")}, key)
	}
	if err != nil {
		return nil, s.fail(url, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Verified++
	s.keys[of.keyID] = true
	return func() {
		s.add(func(c *VerifyCounts) { c.Verified-- })
		_ = s.fail(url, fmt.Errorf("%w: the body does not match Content-Digest", millrace.ErrInvalid))
	}, nil
}

// stampOf returns the signature of a response's content, or nil if none.
func stampOf(h http.Header) (*signature, error) {
	if len(h["Signature-Input"]) == 0 {
		return nil, nil
	}
	all, err := signatures(h, stampTag)
	if err != nil {
		return nil, nil //nolint:nilerr // the signature has another purpose
	}
	if len(all) == 0 {
		return nil, nil
	}
	s := &all[0]
	for _, name := range stamped {
		if !s.covers(name, false) {
			return nil, fmt.Errorf("%w: the signature does not cover %s", millrace.ErrInvalid, name)
		}
	}
	if !s.covers("@path", true) || !s.covers("@query", true) {
		return nil, fmt.Errorf("%w: the signature does not cover the requested URL", millrace.ErrInvalid)
	}
	return s, nil
}

// digested reports whether Content-Digest has a digest of a supported algorithm (RFC 9530,
// section 2).
func digested(h http.Header) bool {
	dict, err := httpsfv.UnmarshalDictionary(h["Content-Digest"])
	if err != nil {
		return false
	}
	for name, size := range map[string]int{"sha-256": 32, "sha-512": 64} {
		m, _ := dict.Get(name)
		item, _ := m.(httpsfv.Item)
		if sum, ok := item.Value.([]byte); ok && len(sum) == size {
			return true
		}
	}
	return false
}

func (s *ResponseVerifier) add(to func(*VerifyCounts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to(&s.count)
}

func (s *ResponseVerifier) fail(url string, err error) error {
	no := &VerifyError{url, err}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Invalid++
	s.first = cmp.Or(s.first, error(no))
	return no
}

// Counts returns the current counts.
func (s *ResponseVerifier) Counts() VerifyCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.count
	c.Keys = slices.Sorted(maps.Keys(s.keys))
	return c
}

// Err returns the first invalid signature as an error, or nil if there was none.
func (s *ResponseVerifier) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		return nil
	}
	if no, ok := errors.AsType[*VerifyError](s.first); ok && s.count.Invalid > 1 {
		return &VerifyError{no.URL, fmt.Errorf("%w (and %d more)", no.Err, s.count.Invalid-1)}
	}
	return s.first
}
