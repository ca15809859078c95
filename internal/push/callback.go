package push

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // hubs that sign with nothing better are still in use, and an HMAC is not broken by collisions
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
)

var _ millrace.Handler = (*Subscriber)(nil)

// maxChallenge is the most bytes of what a hub wants repeated.
const maxChallenge = 4 << 10

// tokenLength is how long the last segment of a callback is.
const tokenLength = 32

func isToken(s string) bool {
	return len(s) == tokenLength && strings.Trim(s, "0123456789abcdef") == ""
}

// token returns the last segment of a path: what stands before it, a proxy may
// have taken away.
func token(r *http.Request) string {
	path := r.URL.Path
	return path[strings.LastIndexByte(path, '/')+1:]
}

// Scope implements [millrace.Handler].
func (s *Subscriber) Scope(r *http.Request) (right millrace.Scope, ok bool) {
	return millrace.ScopeRead, isToken(token(r)) && (r.Method == http.MethodGet || r.Method == http.MethodPost)
}

// Serve implements [millrace.Handler]: it answers a hub.
func (s *Subscriber) Serve(w http.ResponseWriter, r *http.Request, _ millrace.Live) error {
	s.mu.Lock()
	sub := s.subs[token(r)]
	s.mu.Unlock()
	switch {
	case sub == nil:
		// A hub that hears so may forget the subscription (WebSub, section 7).
		text(w, http.StatusGone, "there is no such subscription\n")
		return nil
	case r.Method == http.MethodGet:
		s.asked(w, r, sub)
		return nil
	}
	return s.receive(w, r, sub)
}

// asked answers a hub that verifies a subscription (WebSub, section 5.3) or
// denies it (5.2). This program never asks a hub to end one.
func (s *Subscriber) asked(w http.ResponseWriter, r *http.Request, sub *subscription) {
	q := r.URL.Query()
	challenge := q.Get("hub.challenge")
	mode := q.Get("hub.mode")
	switch {
	case q.Get("hub.topic") != sub.topic && (mode != "denied" || q.Has("hub.topic")):
	case mode == "denied":
		s.log.WarnContext(r.Context(), "a hub denies a subscription", "topic", sub.topic, "reason", shown(q.Get("hub.reason")))
		s.answer(sub, answer{denied: cmp.Or(shown(q.Get("hub.reason")), "it gives no reason")})
		text(w, http.StatusOK, "")
		return
	case mode == "subscribe" && challenge != "" && len(challenge) <= maxChallenge:
		s.answer(sub, confirmed(q.Get("hub.lease_seconds")))
		text(w, http.StatusOK, challenge)
		return
	}
	text(w, http.StatusNotFound, "unknown subscription\n")
}

// sent takes what a hub tells. It is acknowledged also if it is not to be
// believed, in which case it has no effect (WebSub, section 8).
func (s *Subscriber) receive(w http.ResponseWriter, r *http.Request, sub *subscription) error {
	good := true
	if sub.secret != "" {
		method, sum, _ := strings.Cut(r.Header.Get("X-Hub-Signature"), "=")
		want, err := hex.DecodeString(sum)
		newHash := digests[strings.ToLower(method)]
		if good = newHash != nil && err == nil; good {
			mac := hmac.New(newHash, []byte(sub.secret))
			if _, err := io.Copy(mac, r.Body); err != nil {
				return tooLong(err)
			}
			good = hmac.Equal(mac.Sum(nil), want)
		}
	}
	if good {
		s.log.DebugContext(r.Context(), "a hub says that a site has changed", "topic", sub.topic)
		sub.hint()
	} else {
		s.log.WarnContext(r.Context(), "what is said of a site is not signed as its hub signs, and has no effect", "topic", sub.topic)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// tooLong says so of a body that is longer than the server takes.
func tooLong(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("%w: %w", millrace.ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
}

// digests are those that hubs sign with (WebSub, section 8.1).
var digests = map[string]func() hash.Hash{
	"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
}

// text answers a few words, which no browser takes for anything else.
func text(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // a hub that is gone needs no answer
}

// shown returns what a stranger says as it may be in a log.
func shown(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return strings.Trim(strconv.Quote(s), `"`)
}
