package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// The header fields of a message.
const (
	IDField        = "Webhook-Id"
	TimestampField = "Webhook-Timestamp"
	SignatureField = "Webhook-Signature"
)

const (
	firstWait = time.Second
	maxWait   = 5 * time.Minute
	maxAsked  = 24 * time.Hour // of a Retry-After
	maxAnswer = 64 << 10       // bytes of an answer that are read, so that its connection can be used again
)

// Options of [New]. The zero value works.
type Options struct {
	Now    func() time.Time // nil = time.Now
	Rand   func() float64   // in [0, 1), for the jitter of waits; nil = math/rand
	Logger *slog.Logger     // told of failures, and of their end; nil = discard
}

// Sender sends messages to one URL, one at a time.
type Sender struct {
	client  *http.Client
	url     string
	name    string // of the URL, as it may be seen
	secrets []Secret
	o       Options
}

// New makes a sender. Redirects are not followed: a message goes where it is
// meant to go. Nobody is told more of the URL than its host. Errors are
// [millrace.ErrInvalid].
func New(client *http.Client, target string, secrets []Secret, o *Options) (*Sender, error) {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is no URL: %w", millrace.Coded("bad-url", millrace.ErrInvalid)) // the error repeats it, with what is secret in it
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%q is no URL of a webhook; write http:// or https:// in front of a host: %w", named(u), millrace.Coded("bad-scheme", millrace.ErrInvalid))
	case u.User != nil:
		return nil, fmt.Errorf("%s: a URL that carries credentials is not posted to: %w", named(u), millrace.Coded("url-credentials", millrace.ErrInvalid))
	case len(secrets) == 0:
		return nil, fmt.Errorf("%s: no secret: %w", named(u), millrace.Coded("no-secret", millrace.ErrInvalid))
	}
	u.Fragment, u.RawFragment = "", ""
	s := &Sender{client: fetch.NoRedirects(client), url: u.String(), name: named(u), secrets: secrets}
	if o != nil {
		s.o = *o
	}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	if s.o.Rand == nil {
		s.o.Rand = rand.Float64
	}
	if s.o.Logger == nil {
		s.o.Logger = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// named gives a URL as it may be seen, up to its host: path and query may be
// secrets of their own.
func named(u *url.URL) string {
	shown := &url.URL{Scheme: u.Scheme, Host: u.Host}
	if u.Host == "" { // no URL of a webhook, and perhaps a host
		shown.Path, _, _ = strings.Cut(u.Path, "/")
	}
	return shown.String()
}

// Name gives the URL as it may be seen.
func (s *Sender) Name() string { return s.name }

// Key gives what tells this receiver from others, and tells nobody where it is.
func (s *Sender) Key() string {
	sum := sha256.Sum256([]byte(s.url))
	return hex.EncodeToString(sum[:8])
}

// Send sends a message, JSON, until it is acknowledged or the context ends,
// whose error it gives. The same body is the same message, also to another
// process. [millrace.ErrNotFound]: the receiver is gone for good (410);
// [millrace.ErrTooLarge]: it takes no message of that length (413);
// [millrace.ErrForbidden]: it is at an address that is refused.
func (s *Sender) Send(ctx context.Context, body []byte) error {
	for fails := 0; ; fails++ {
		err := s.Try(ctx, body)
		status, answered := errors.AsType[*fetch.StatusError](err)
		switch {
		case err == nil:
			if fails > 0 {
				s.o.Logger.InfoContext(ctx, "the webhook takes messages again", "webhook", s.name, "attempts", fails+1)
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case answered && status.Code == http.StatusGone:
			return fmt.Errorf("webhook %s wants no more messages (410 Gone): %w", s.name, millrace.ErrNotFound)
		case answered && status.Code == http.StatusRequestEntityTooLarge:
			return fmt.Errorf("webhook %s takes no message of %d bytes (413): %w", s.name, len(body), millrace.ErrTooLarge)
		case !answered && errors.Is(err, millrace.ErrForbidden):
			return err
		}
		wait := min(firstWait<<min(fails, 16), maxWait)
		wait -= time.Duration(s.o.Rand() * float64(wait/2))
		wait = max(wait, min(fetch.Patience(err), maxAsked))
		s.o.Logger.WarnContext(ctx, "the webhook does not take a message; what there is to tell is kept",
			"webhook", s.name, "error", why(errors.Unwrap(err)), "code", millrace.ErrorCode(err), "again_in", wait.Round(time.Millisecond))
		if err := fetch.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// Try sends a message once. Errors name no more of the URL than its host; they
// wrap a [*fetch.StatusError] if there was an answer.
func (s *Sender) Try(ctx context.Context, body []byte) error {
	sum := sha256.Sum256(body)
	err := s.post(ctx, "msg_"+hex.EncodeToString(sum[:16]), body)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &failure{s.name, err}
}

// failure is a message that was not acknowledged.
type failure struct {
	name string
	err  error
}

func (f *failure) Error() string { return "webhook " + f.name + ": " + why(f.err) }
func (f *failure) Unwrap() error { return f.err }

// why says what went wrong without the URL.
func why(err error) string {
	status, ok := errors.AsType[*fetch.StatusError](err)
	switch {
	case !ok:
		return err.Error()
	case status.Code/100 == 3:
		return fmt.Sprintf("%d %s; a redirect is not followed", status.Code, http.StatusText(status.Code))
	}
	return fmt.Sprintf("%d %s", status.Code, http.StatusText(status.Code))
}

func (s *Sender) post(ctx context.Context, id string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := s.o.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(IDField, id)
	req.Header.Set(TimestampField, strconv.FormatInt(at.Unix(), 10))
	req.Header.Set(SignatureField, signature(s.secrets, id, at, body))
	resp, err := s.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	return fetch.CheckStatus(resp)
}
