package push

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

const (
	leaseAsked = 10 * 24 * time.Hour // requested lease
	minLease   = time.Minute
	maxLease   = 30 * 24 * time.Hour
	answerTime = 10 * time.Minute // time within which the hub must verify the subscription
	askAgain   = time.Minute      // delay after a failure, doubled after each further failure
	maxAgain   = 6 * time.Hour    // maximum delay after a failure
)

// Subscription is a subscription that a hub has confirmed. Callers may store it as
// JSON.
type Subscription struct {
	Topic
	Callback string    `json:"callback"`         // URL that the hub calls
	Secret   string    `json:"secret,omitempty"` // for verifying signatures of the hub, or ""
	Until    time.Time `json:"until"`            // end of the lease
}

// SubscriberOptions configure a [Subscriber]. The zero value works.
type SubscriberOptions struct {
	Logger *slog.Logger // If nil, nothing is logged.
}

// Subscriber maintains subscriptions, and is the [millrace.Handler] of their callbacks. All
// methods are safe for concurrent use.
type Subscriber struct {
	callback string // URL without a final "/"
	log      *slog.Logger

	mu   sync.Mutex
	subs map[string]*subscription // by the last segment of their callbacks
}

// subscription is an active or requested subscription.
type subscription struct {
	topic, secret string
	hint          func()
	answers       chan answer // the last response of the hub
}

// answer is the response of a hub to a subscription.
type answer struct {
	until  time.Time // end of the lease
	denied string    // the hub's reason for denying the subscription; "" if not denied
}

// NewSubscriber returns a Subscriber with callbacks below a public URL. If callback is invalid,
// NewSubscriber returns [millrace.ErrInvalid].
func NewSubscriber(callback string, o *SubscriberOptions) (*Subscriber, error) {
	callback, err := checkEndpoint("callback", callback)
	if err != nil {
		return nil, err
	}
	if strings.Contains(callback, "?") {
		return nil, fmt.Errorf("callback %s: the URL must not have a query: %w", fetch.HostOf(callback), millrace.ErrInvalid)
	}
	s := &Subscriber{callback: strings.TrimRight(callback, "/"), subs: make(map[string]*subscription)}
	if o != nil {
		s.log = o.Logger
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Keep maintains a subscription to the changes of a site until ctx ends, and returns the error of
// ctx. current is the subscription of an earlier process, or zero. Until current must be renewed,
// Keep sends no request. Keep calls save with every confirmed subscription, and again without a
// lease when the subscription ends. It calls hint when the hub reports a change. save and hint must
// return soon. client fetches from the site and obeys its robots.txt. hub sends the requests to the
// hub, and must ignore robots.txt.
//
// If the site has no hub, Keep returns [millrace.ErrNotFound]. If the hub rejects the
// subscription, or its address is not allowed, Keep returns [millrace.ErrForbidden]. It
// retries after other failures.
func Keep(ctx context.Context, s *Subscriber, client, hub *http.Client, site string, current Subscription, save func(Subscription), hint func()) error {
	token, known := strings.CutPrefix(current.Callback, s.callback+"/")
	var sub *subscription
	defer func() { s.drop(token) }()
	if known && isToken(token) && current.Until.After(time.Now()) {
		sub = s.add(token, current, hint)
	} else {
		current = Subscription{}
	}
	fails := 0
	for {
		if sub != nil {
			if err := rest(ctx, sub, &current, save); err != nil {
				return err
			}
		}
		topic, err := Find(ctx, client, site)
		if err == nil {
			if topic != current.Topic || sub == nil {
				s.drop(token)
				if token, current, err = s.fresh(topic); err != nil {
					return err
				}
				sub = s.add(token, current, hint)
			}
			err = s.ask(ctx, hub, &current, sub)
		}
		switch {
		case err == nil:
			fails = 0
			s.log.InfoContext(ctx, "subscribed", "site", site, "topic", current.URL, "hub", current.Hub, "until", current.Until.Format(time.RFC3339))
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, millrace.ErrNotFound) && topic == Topic{}, errors.Is(err, millrace.ErrForbidden):
			return err
		}
		wait := fetch.Backoff(err, fails, askAgain, maxAgain)
		fails++
		s.log.WarnContext(ctx, "subscribe to hub failed; retrying", "site", site, "err", err, "retry_in", wait)
		if err := fetch.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// rest waits until a subscription must be renewed, and saves each confirmation.
func rest(ctx context.Context, sub *subscription, current *Subscription, save func(Subscription)) error {
	for {
		save(*current)
		left := time.Until(current.Until)
		if left <= 0 {
			return nil
		}
		select {
		case <-time.After(left - left/5): // Reserve a fifth of the time for failed attempts.
			return nil
		case a := <-sub.answers: // a hub may renew without a request
			current.Until = a.until
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fresh returns a new subscription. It has a secret only if the hub uses https or is on the local
// host; otherwise, others could read the secret (WebSub, section 5.1).
func (s *Subscriber) fresh(t Topic) (token string, out Subscription, err error) {
	var b [48]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", out, fmt.Errorf("create subscription secret: %w", err)
	}
	token = hex.EncodeToString(b[:16])
	out = Subscription{Topic: t, Callback: s.callback + "/" + token}
	if u, err := url.Parse(t.Hub); err == nil && (u.Scheme == "https" || fetch.IsLoopback(u.Hostname())) {
		out.Secret = hex.EncodeToString(b[16:])
	}
	return token, out, nil
}

// add registers the callbacks of a subscription.
func (s *Subscriber) add(token string, current Subscription, hint func()) *subscription {
	sub := &subscription{topic: current.URL, secret: current.Secret, hint: hint, answers: make(chan answer, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[token] = sub
	return sub
}

// drop removes the callbacks of a subscription.
func (s *Subscriber) drop(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs, token)
}

// ask requests or renews a subscription (WebSub, section 5.1), and waits for the
// confirmation.
func (s *Subscriber) ask(ctx context.Context, hub *http.Client, current *Subscription, sub *subscription) error {
	select {
	case <-sub.answers: // answer to an earlier request
	default:
	}
	form := url.Values{
		"hub.mode": {"subscribe"}, "hub.topic": {current.URL}, "hub.callback": {current.Callback},
		"hub.lease_seconds": {strconv.Itoa(int(leaseAsked.Seconds()))},
	}
	if current.Secret != "" {
		form.Set("hub.secret", current.Secret)
	}
	if err := post(ctx, hub, current.Hub, formType, []byte(form.Encode())); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	select {
	case a := <-sub.answers:
		if a.denied != "" {
			return fmt.Errorf("hub %s denied the subscription: %s: %w", current.Hub, a.denied, millrace.Coded("hub-denied", millrace.ErrForbidden))
		}
		current.Until = a.until
		return nil
	case <-time.After(answerTime):
		// Do not log the full URL, because it is a secret: it allows sending notifications.
		return fmt.Errorf("hub %s sent no verification request below %s: %w", current.Hub, s.callback, millrace.Coded("hub-silent", millrace.ErrUnavailable))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// confirmed returns the response of a hub that confirms a subscription. seconds is the hub's lease. It
// is limited to minLease and maxLease, and leaseAsked if invalid.
func confirmed(seconds string) answer {
	n, err := strconv.ParseInt(seconds, 10, 64)
	length := leaseAsked
	if err == nil {
		length = min(max(time.Duration(min(n, int64(maxLease/time.Second)))*time.Second, minLease), maxLease)
	}
	return answer{until: time.Now().Add(length)}
}

// answer replaces the pending response of a hub.
func (s *Subscriber) answer(sub *subscription, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-sub.answers:
	default:
	}
	sub.answers <- a
}
