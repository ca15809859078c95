package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// Header fields of a message.
const (
	IDField        = "Webhook-Id"
	TimestampField = "Webhook-Timestamp"
	SignatureField = "Webhook-Signature"
)

const (
	firstWait = time.Second
	maxWait   = 5 * time.Minute
)

// Options configure a [Sender]. The zero value is valid.
type Options struct {
	Now    func() time.Time // clock; if nil, time.Now
	Logger *slog.Logger     // logs failures and recovery. If nil, nothing is logged.
}

// Sender sends messages to one URL, one at a time.
type Sender struct {
	client  *http.Client
	url     string
	name    string // scheme and host of the URL, because the rest may be secret
	secrets []Secret
	o       Options
}

// New returns a sender. It does not follow redirects, so a message goes only to the given
// host. Logs show only the scheme and host of the URL. Errors are [millrace.ErrInvalid].
func New(client *http.Client, target string, secrets []Secret, o *Options) (*Sender, error) {
	u, err := fetch.Endpoint(target)
	if err != nil {
		return nil, err
	}
	s := &Sender{client: fetch.NoRedirects(client), url: u.String(), name: fetch.HostOf(target), secrets: secrets}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s: missing secret: %w", s.name, millrace.Coded("no-secret", millrace.ErrInvalid))
	}
	if o != nil {
		s.o = *o
	}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	if s.o.Logger == nil {
		s.o.Logger = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Name returns the scheme and host of the URL, because the rest may be secret.
func (s *Sender) Name() string { return s.name }

// Key returns an identifier of the receiver that does not reveal its URL.
func (s *Sender) Key() string {
	sum := sha256.Sum256([]byte(s.url))
	return hex.EncodeToString(sum[:8])
}

// Send sends a message in JSON until it is acknowledged. If the context ends first, it returns the
// context's error. Messages with the same body are the same message to the receiver, even from
// different processes. The error is [millrace.ErrNotFound] if the receiver is permanently gone
// (410), [millrace.ErrTooLarge] if it rejects a message of that length (413), and
// [millrace.ErrForbidden] if its address is not allowed.
func (s *Sender) Send(ctx context.Context, body []byte) error {
	for fails := 0; ; fails++ {
		err := s.Try(ctx, body)
		status, answered := errors.AsType[*fetch.StatusError](err)
		switch {
		case err == nil:
			if fails > 0 {
				s.o.Logger.InfoContext(ctx, "webhook recovered", "receiver", s.name, "attempts", fails+1)
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case answered && status.Code == http.StatusGone:
			return fmt.Errorf("webhook %s accepts no more messages (410 Gone): %w", s.name, millrace.ErrNotFound)
		case answered && status.Code == http.StatusRequestEntityTooLarge:
			return fmt.Errorf("webhook %s rejects a message of %d bytes (413): %w", s.name, len(body), millrace.ErrTooLarge)
		case !answered && errors.Is(err, millrace.ErrForbidden):
			return err
		}
		wait := fetch.Backoff(err, fails, firstWait, maxWait)
		s.o.Logger.WarnContext(ctx, "webhook failed; retrying",
			"receiver", s.name, "err", err, "retry_in", wait.Round(time.Millisecond))
		if err := fetch.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// Try sends a message once. Errors are those of [fetch.Post].
func (s *Sender) Try(ctx context.Context, body []byte) error {
	sum, at := sha256.Sum256(body), s.o.Now()
	id := "msg_" + hex.EncodeToString(sum[:16])
	_, _, err := fetch.Post(ctx, s.client, s.url, http.Header{
		"Content-Type": {"application/json"},
		IDField:        {id},
		TimestampField: {strconv.FormatInt(at.Unix(), 10)},
		SignatureField: {signature(s.secrets, id, at, body)},
	}, body)
	return err
}
