package analytics

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/store"
)

// post posts a group of events once. If the receiver accepts the group but does not count it,
// ignored is the reason. Errors wrap a [*fetch.StatusError] if a response arrived.
type post func(ctx context.Context, group []store.Event) (ignored string, err error)

// newPost returns the post function of a target.
func newPost(t *Target, site string, client *http.Client, o *ExporterOptions) (post, error) {
	p := provider{target: t, client: client, agent: o.UserAgent, base: o.Base, now: o.Now, site: site}
	switch t.Kind {
	case Umami:
		return p.umami, nil
	case Plausible:
		return p.plausible, nil
	case GA4:
		return p.ga4, nil
	}
	hook, err := webhook.New(client, t.url.String(), o.Secrets, &webhook.Options{Now: o.Now})
	return func(ctx context.Context, group []store.Event) (string, error) {
		return "", postHook(ctx, hook, site, group)
	}, err
}

// provider posts to an analytics service.
type provider struct {
	target *Target
	client *http.Client
	agent  string
	base   string
	now    func() time.Time
	site   string
}

// send posts a body once, and returns the header and the body of a 2xx response.
func (p *provider) send(ctx context.Context, body any) (http.Header, []byte, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {p.agent}}
	return fetch.Post(ctx, p.client, p.target.url.String(), h, encoded)
}

// group divides events into one group per request. Each group keeps the order.
func (r *receiver) group(events []store.Event) (out [][]store.Event) {
	open := make(map[string]int) // index of the group that is not full, per bot if byBot
	for _, e := range events {
		bot := ""
		if r.byBot {
			bot = e.Bot
		}
		i, ok := open[bot]
		if !ok || len(out[i]) == r.together {
			i = len(out)
			open[bot] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], e)
	}
	return out
}

// properties returns the properties of an event. Their names are those of OpenFeeder 1.0, section
// 12, as far as that section defines them.
func properties(e *store.Event) map[string]any {
	p := map[string]any{
		"bot_name": e.Bot, "protocol": e.Protocol, "endpoint": string(e.Endpoint), "status": e.Status,
		"outcome": string(store.OutcomeOf(e.Status)), "cached": e.Cached, "results": e.Results, "bytes": e.Bytes, "size": e.Size, "html": e.HTML,
		"response_ms": float64(e.Took.Microseconds()) / 1000,
	}
	for name, value := range map[string]string{"bot_family": e.Family, "identity": string(e.Identity), "query": e.Query, "intent": e.Intent} {
		if value != "" {
			p[name] = value
		}
	}
	return p
}

// eventName returns the name of an event, for receivers that need one.
func eventName(e *store.Event) string {
	switch e.Endpoint {
	case store.EndpointSearch, store.EndpointFetch, store.EndpointIndex, store.EndpointDiscovery, store.EndpointFile:
		return "bot_" + string(e.Endpoint)
	}
	return "bot_request"
}

// page returns the URL of an event, limited to a number of bytes. It makes the path printable,
// because clients choose it and a receiver may fail to decode it.
func (p *provider) page(e *store.Event, most int) *url.URL {
	asked, query, _ := strings.Cut(cut(e.Path), "?")
	u, err := url.Parse(canon.Absolute(p.base, asked))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		if u, err = url.Parse(p.base); err != nil {
			u = new(url.URL)
		}
		u.Path = "/" + strings.TrimLeft(asked, "/")
	}
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: printable(u.Path)}
	if values, err := url.ParseQuery(query); err == nil {
		clean := url.Values{}
		for name, list := range values {
			for _, value := range list {
				clean.Add(printable(name), printable(value))
			}
		}
		u.RawQuery = clean.Encode()
	}
	if len(u.String()) > most {
		u.RawQuery = ""
	}
	for len(u.String()) > most && u.Path != "" { // never cut inside an escape
		_, n := utf8.DecodeLastRuneInString(u.Path)
		u.Path = u.Path[:len(u.Path)-n]
	}
	return u
}

// printable returns a text as valid UTF-8 without control characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r // an invalid byte is utf8.RuneError
	}, s)
}

// leading returns the first characters of a text.
func leading(s string, characters int) string {
	for i := range s {
		if characters == 0 {
			return s[:i]
		}
		characters--
	}
	return s
}

// past returns t, or now if t is in the future.
func past(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}
