package push

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // some hubs support no other hash, and collisions do not break an HMAC
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

// maxChallenge is the maximum size of a hub's challenge in bytes.
const maxChallenge = 4 << 10

// tokenLength is the length of the last segment of a callback.
const tokenLength = 32

func isToken(s string) bool {
	return len(s) == tokenLength && strings.Trim(s, "0123456789abcdef") == ""
}

// token returns the last segment of a path. It ignores the other segments, which a proxy may
// have removed.
func token(r *http.Request) string {
	path := r.URL.Path
	return path[strings.LastIndexByte(path, '/')+1:]
}

// Scope implements [millrace.Handler].
func (s *Subscriber) Scope(r *http.Request) (scope millrace.Scope, ok bool) {
	return millrace.ScopeRead, isToken(token(r)) && (r.Method == http.MethodGet || r.Method == http.MethodPost)
}

// Serve implements [millrace.Handler]. It responds to hubs.
func (s *Subscriber) Serve(w http.ResponseWriter, r *http.Request, _ millrace.Live) error {
	s.mu.Lock()
	sub := s.subs[token(r)]
	s.mu.Unlock()
	switch {
	case sub == nil:
		// After this response, a hub may delete the subscription (WebSub, section 7).
		text(w, http.StatusGone, "subscription not found\n")
		return nil
	case r.Method == http.MethodGet:
		s.verify(w, r, sub)
		return nil
	}
	return s.receive(w, r, sub)
}

// verify responds to a hub that verifies a subscription (WebSub, section 5.3) or denies it
// (section 5.2). It does not confirm the end of a subscription, because a Subscriber never
// unsubscribes.
func (s *Subscriber) verify(w http.ResponseWriter, r *http.Request, sub *subscription) {
	q := r.URL.Query()
	challenge := q.Get("hub.challenge")
	mode := q.Get("hub.mode")
	switch {
	case q.Get("hub.topic") != sub.topic && (mode != "denied" || q.Has("hub.topic")):
	case mode == "denied":
		s.log.WarnContext(r.Context(), "hub denied the subscription", "topic", sub.topic, "reason", safeText(q.Get("hub.reason")))
		s.answer(sub, answer{denied: cmp.Or(safeText(q.Get("hub.reason")), "no reason given")})
		text(w, http.StatusOK, "")
		return
	case mode == "subscribe" && challenge != "" && len(challenge) <= maxChallenge:
		s.answer(sub, confirmed(q.Get("hub.lease_seconds")))
		text(w, http.StatusOK, challenge)
		return
	}
	text(w, http.StatusNotFound, "unknown subscription\n")
}

// receive handles a notification. It acknowledges an invalid notification too, but ignores it
// (WebSub, section 8).
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
		s.log.DebugContext(r.Context(), "hub notified of a change", "topic", sub.topic)
		sub.hint()
	} else {
		s.log.WarnContext(r.Context(), "ignoring hub notification with a wrong signature", "topic", sub.topic)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// tooLong returns the error of a body above the limit.
func tooLong(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("%w: %w", millrace.ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
}

// digests contains the hash functions that hubs may use (WebSub, section 8.1).
var digests = map[string]func() hash.Hash{
	"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
}

// text responds with plain text.
func text(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the hub may have disconnected
}

// safeText shortens and escapes untrusted text for a log message.
func safeText(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return strings.Trim(strconv.Quote(s), `"`)
}
