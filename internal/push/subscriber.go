package push

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

const (
	leaseAsked = 10 * 24 * time.Hour // that is asked for
	leastLease = time.Minute
	mostLease  = 30 * 24 * time.Hour
	answerTime = 10 * time.Minute // for the hub to ask whether it was meant
	askAgain   = time.Minute      // after a failure, doubled with every further one
	mostAgain  = 6 * time.Hour
)

// Subscription is a subscription that a hub has confirmed. It encodes as JSON,
// for those who keep it.
type Subscription struct {
	Topic
	Callback string    `json:"callback"`         // that the hub calls
	Secret   string    `json:"secret,omitempty"` // that it signs with; "" = it does not
	Until    time.Time `json:"until"`            // the end of its lease
}

// SubscriberOptions configure a [Subscriber]. The zero value works.
type SubscriberOptions struct {
	Logger *slog.Logger // nil = discard
}

// Subscriber keeps subscriptions, and is the [millrace.Handler] of their
// callbacks. All methods are safe for concurrent use.
type Subscriber struct {
	callback string // URL without "/" at its end
	client   *http.Client
	log      *slog.Logger

	mu   sync.Mutex
	subs map[string]*subscription // by the last segment of their callbacks
}

// subscription is one that is kept, or asked for.
type subscription struct {
	topic, secret string
	hint          func()
	changed       chan struct{} // holds one, when one of the following has changed

	mu        sync.Mutex
	until     time.Time
	confirmed int    // how often
	denied    string // why the hub does not, "" = it has not said so
}

// NewSubscriber makes a subscriber whose callbacks are below a URL that hubs can
// reach. The client asks hubs, which is no crawling: it has no robots.txt to keep
// to. Errors are [millrace.ErrInvalid].
func NewSubscriber(client *http.Client, callback string, o *SubscriberOptions) (*Subscriber, error) {
	callback, err := checkEndpoint("callback", callback)
	if err != nil {
		return nil, err
	}
	if strings.Contains(callback, "?") {
		return nil, fmt.Errorf("callback %s: a base has no query: %w", fetch.HostOf(callback), millrace.ErrInvalid)
	}
	s := &Subscriber{callback: strings.TrimRight(callback, "/"), client: client, subs: make(map[string]*subscription)}
	if o != nil {
		s.log = o.Logger
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Keep keeps a subscription to the changes of a site, until its context ends,
// whose error it gives. held is the one of an earlier process, the zero value if
// there was none: as long as its lease runs, nobody is asked for anything. kept is
// given every one that is confirmed, and one that ends without a lease, and hint is called whenever the hub says that
// the site has changed; both return soon. The client asks the site, and
// keeps to its robots.txt.
//
// [millrace.ErrNotFound]: the site has no hub; [millrace.ErrForbidden]: its hub
// does not take the subscription, or it is at an address that is refused. Other
// failures are tried again.
func (s *Subscriber) Keep(ctx context.Context, client *http.Client, site string, held Subscription, kept func(Subscription), hint func()) error {
	token, known := strings.CutPrefix(held.Callback, s.callback+"/")
	var sub *subscription
	defer func() { s.drop(token) }()
	if known && isToken(token) && held.Until.After(time.Now()) {
		sub = s.add(token, held, hint)
	} else {
		held = Subscription{}
	}
	fails := 0
	for {
		if sub != nil {
			if err := s.rest(ctx, sub, held, kept); err != nil {
				return err
			}
		}
		topic, err := Find(ctx, client, site)
		if err == nil {
			if topic != held.Topic || sub == nil {
				s.drop(token)
				if token, held, err = s.fresh(topic); err != nil {
					return err
				}
				sub = s.add(token, held, hint)
			}
			err = s.ask(ctx, held, sub)
		}
		switch {
		case err == nil:
			fails = 0
			s.log.InfoContext(ctx, "subscribed", "site", site, "topic", held.URL, "hub", held.Hub, "until", sub.lease().Format(time.RFC3339))
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, millrace.ErrNotFound) && topic == Topic{}, errors.Is(err, millrace.ErrForbidden):
			return err
		}
		wait := fetch.Backoff(err, fails, askAgain, mostAgain)
		fails++
		s.log.WarnContext(ctx, "the hub of a site is not subscribed to", "site", site, "error", err, "again_in", wait)
		if err := fetch.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// rest waits until a subscription has to be renewed, and has each confirmation
// kept.
func (s *Subscriber) rest(ctx context.Context, sub *subscription, held Subscription, kept func(Subscription)) error {
	for {
		held.Until = sub.lease()
		kept(held)
		left := time.Until(held.Until)
		if left <= 0 {
			return nil
		}
		// A fifth of it is for attempts that fail.
		due := time.NewTimer(left - left/5)
		select {
		case <-due.C:
			return nil
		case <-sub.changed: // a hub may renew by itself
			due.Stop()
		case <-ctx.Done():
			due.Stop()
			return ctx.Err()
		}
	}
}

// fresh makes a subscription that is still to be asked for. A secret that could
// be read on its way is none (WebSub, section 5.1).
func (s *Subscriber) fresh(t Topic) (token string, out Subscription, err error) {
	var b [48]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", out, fmt.Errorf("secret of a subscription: %w", err)
	}
	token = hex.EncodeToString(b[:16])
	out = Subscription{Topic: t, Callback: s.callback + "/" + token}
	if u, err := url.Parse(t.Hub); err == nil && (u.Scheme == "https" || isLoopback(u.Hostname())) {
		out.Secret = hex.EncodeToString(b[16:])
	}
	return token, out, nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost"
}

// add lets callbacks of a subscription in.
func (s *Subscriber) add(token string, held Subscription, hint func()) *subscription {
	sub := &subscription{topic: held.URL, secret: held.Secret, hint: hint, until: held.Until, changed: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[token] = sub
	return sub
}

// drop ends the callbacks of a subscription.
func (s *Subscriber) drop(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs, token)
}

// lease gives until when a subscription is confirmed.
func (sub *subscription) lease() time.Time {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.until
}

// ask asks a hub for a subscription (WebSub, section 5.1), or for a longer lease
// of one, and waits until it has confirmed it.
func (s *Subscriber) ask(ctx context.Context, held Subscription, sub *subscription) error {
	select {
	case <-sub.changed:
	default:
	}
	sub.mu.Lock()
	was := sub.confirmed
	sub.denied = ""
	sub.mu.Unlock()
	form := url.Values{
		"hub.mode": {"subscribe"}, "hub.topic": {held.URL}, "hub.callback": {held.Callback},
		"hub.lease_seconds": {strconv.Itoa(int(leaseAsked.Seconds()))},
	}
	if held.Secret != "" {
		form.Set("hub.secret", held.Secret)
	}
	if err := post(ctx, s.client, held.Hub, formType, []byte(form.Encode())); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	late := time.NewTimer(answerTime)
	defer late.Stop()
	for {
		sub.mu.Lock()
		confirmed, denied := sub.confirmed, sub.denied
		sub.mu.Unlock()
		switch {
		case denied != "":
			return fmt.Errorf("hub %s denies the subscription: %s: %w", held.Hub, denied, millrace.Coded("hub-denied", millrace.ErrForbidden))
		case confirmed > was:
			return nil
		}
		select {
		case <-sub.changed:
		case <-late.C:
			// Who knows all of the address may send to it.
			return fmt.Errorf("hub %s has not asked below %s whether the subscription was meant: %w", held.Hub, s.callback, millrace.Coded("hub-silent", millrace.ErrUnavailable))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// confirm notes that a hub asks whether a subscription was meant, and for how
// long it is.
func (s *Subscriber) confirm(sub *subscription, seconds string) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	length := leaseAsked
	if err == nil {
		length = min(max(time.Duration(min(n, int64(mostLease/time.Second)))*time.Second, leastLease), mostLease)
	}
	sub.mu.Lock()
	sub.until, sub.confirmed = time.Now().Add(length), sub.confirmed+1
	sub.mu.Unlock()
	sub.notify()
}

// deny notes that a hub does not tell of a topic.
func (sub *subscription) deny(reason string) {
	sub.mu.Lock()
	sub.denied, sub.until = cmp.Or(reason, "it gives no reason"), time.Time{}
	sub.mu.Unlock()
	sub.notify()
}

func (sub *subscription) notify() {
	select {
	case sub.changed <- struct{}{}:
	default:
	}
}
