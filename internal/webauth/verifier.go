package webauth

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace"
)

// VerifierOptions configure a [Verifier].
type VerifierOptions struct {
	// Client fetches key directories at URLs that senders choose. It must be guarded. If nil,
	// nothing can be verified.
	Client *http.Client
	// Bases are the schemes and authorities of the site's URLs, such as "https://example.com".
	// A signature for another authority is not valid here. If empty, the base is http and the
	// Host field.
	Bases []string
	// AllowHTTP also accepts directories at http URLs.
	AllowHTTP bool
	// Now returns the time. If nil, time.Now.
	Now func() time.Time
}

// Verifier identifies the signer of a request by Web Bot Auth. It is safe for
// concurrent use.
type Verifier struct {
	bases  []string
	plain  bool
	maxAge time.Duration
	now    func() time.Time
	dirs   *directories
	nonces *nonces
}

// NewVerifier returns a verifier.
func NewVerifier(o *VerifierOptions) *Verifier {
	v := &Verifier{plain: o.AllowHTTP, maxAge: maxAge, dirs: newDirectories(o.Client), nonces: newNonces()}
	return v.At(o.Now, o.Bases...)
}

// maxAge is the longest time for which a signature may be valid.
const maxAge = 24 * time.Hour

// At returns a verifier for a site with another clock and other bases. It shares the used nonces
// and the cached directories of v.
func (v *Verifier) At(now func() time.Time, bases ...string) *Verifier {
	next := *v
	next.bases, next.now = nil, now
	if now == nil {
		next.now = time.Now
	}
	for _, b := range bases {
		next.bases = append(next.bases, normalBase(b))
	}
	return &next
}

// offline is a transport that fails every request.
type offline struct{}

// RoundTrip implements [http.RoundTripper].
func (offline) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%w: key directories are not fetched", millrace.Coded("no-directories", millrace.ErrUnavailable))
}

// Verify returns the signer of a request. It is a host, such as "bot.example.com", if the directory
// is the host's own. Otherwise it is the URL of a directory, which contains "://" and does not
// identify the owner of the host. It is "" if the request has no Web Bot Auth signature. Verify may
// take seconds, if it has to fetch a directory.
//
// Errors are [millrace.ErrInvalid] for a signature that is wrong, expired or reused,
// [millrace.ErrNotFound] for a key that the directory does not have, [millrace.ErrUnavailable]
// if the directory cannot be fetched, or the error of the context. Treat the sender of such a
// request as unidentified. Call Verify once per request: a second call fails because of the
// used nonce.
func (v *Verifier) Verify(ctx context.Context, r *http.Request) (name string, err error) {
	all, err := signatures(r.Header, botTag)
	if err != nil {
		return "", err
	}
	for i := range all {
		var no error
		if name, no = v.one(ctx, r, &all[i]); no == nil {
			return name, nil
		}
		err = cmp.Or(err, no)
	}
	return "", err
}

// one verifies one signature.
func (v *Verifier) one(ctx context.Context, r *http.Request, s *signature) (string, error) {
	if err := v.inTime(s); err != nil {
		return "", err
	}
	switch {
	case len(s.keyID) != thumbprintSize:
		return "", millrace.Coded("bad-keyid", fmt.Errorf("%w: invalid keyid %q, want a key thumbprint (RFC 7638)", millrace.ErrInvalid, clip(s.keyID)))
	case !s.covers("@authority", false) && !s.covers("@target-uri", false):
		return "", millrace.Coded("no-authority", fmt.Errorf("%w: the signature %q does not cover @authority", millrace.ErrInvalid, clip(s.label)))
	}
	a, err := s.agentOf(r.Header, v.plain)
	if err != nil {
		return "", err
	}
	bases := v.bases
	if len(bases) == 0 {
		bases = []string{"http://" + r.Host}
	}
	// If no base can be computed, no directory needs to be fetched.
	for _, base := range bases {
		if _, err := requestMessage(r, base).signatureBase(s.covered); err != nil {
			return "", err
		}
	}
	key, err := v.dirs.key(ctx, a.directory, s.keyID)
	if err != nil {
		return "", err
	}
	for _, base := range bases {
		if err = s.verify(requestMessage(r, base), key); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	if s.nonce != "" && !v.nonces.use(a.directory, s.keyID, s.nonce, s.expires.Add(skew), v.now()) {
		return "", fmt.Errorf("%w: the nonce of the signature was already used", millrace.Coded("nonce-reused", millrace.ErrInvalid))
	}
	return a.name, nil
}

// inTime checks the creation and expiry time of a signature.
func (v *Verifier) inTime(s *signature) error {
	now := v.now()
	switch {
	case s.created.IsZero() || s.expires.IsZero():
		return millrace.Coded("signature-time", fmt.Errorf("%w: the signature %q lacks created or expires", millrace.ErrInvalid, clip(s.label)))
	case s.created.After(now.Add(skew)):
		return millrace.Coded("signature-early", fmt.Errorf("%w: the signature was created at %s, in the future", millrace.ErrInvalid, s.created.UTC().Format(time.RFC3339)))
	case !now.Before(s.expires):
		return millrace.Coded("signature-expired", fmt.Errorf("%w: the signature expired at %s", millrace.ErrInvalid, s.expires.UTC().Format(time.RFC3339)))
	case s.expires.Sub(s.created) > v.maxAge:
		return millrace.Coded("signature-long", fmt.Errorf("%w: the signature is valid for %s, the maximum is %s", millrace.ErrInvalid, s.expires.Sub(s.created), v.maxAge))
	}
	return nil
}
