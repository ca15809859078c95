package analytics

import (
	"context"
	"encoding/json"
	"fmt"
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

// newPoster makes what posts to a target.
func newPoster(t *Target, site string, client *http.Client, o *ExporterOptions) (poster, error) {
	p := provider{target: t, client: client, agent: o.UserAgent, base: o.Base, now: o.Now}
	switch t.Kind {
	case Umami:
		return &umami{p}, nil
	case Plausible:
		return &plausible{p}, nil
	case GA4:
		return &ga4{p, site}, nil
	}
	hook, err := webhook.New(client, t.url.String(), o.Secrets, &webhook.Options{Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &hooked{hook, site}, nil
}

// provider is what posting to all providers of analytics has in common.
type provider struct {
	target *Target
	client *http.Client
	agent  string
	base   string
	now    func() time.Time
}

// send posts a body once, and gives what an answer of 2xx says.
func (p *provider) send(ctx context.Context, body any) (http.Header, []byte, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {p.agent}}
	return fetch.Post(ctx, p.client, p.target.url.String(), h, encoded)
}

// apart gives each event alone.
func apart(events []store.Event) [][]store.Event {
	out := make([][]store.Event, len(events))
	for i := range events {
		out[i] = events[i : i+1 : i+1]
	}
	return out
}

// eventName is what an event is called, for receivers whose events have names.
func eventName(e *store.Event) string {
	switch e.Endpoint {
	case store.EndpointSearch, store.EndpointFetch, store.EndpointIndex, store.EndpointDiscovery, store.EndpointFile:
		return "bot_" + string(e.Endpoint)
	}
	return "bot_request"
}

// page gives the URL of what an event is about, of at most most bytes. A path may
// be anything that somebody has asked for.
func (p *provider) page(e *store.Event, most int) *url.URL {
	asked := cut(e.Path)
	u, err := url.Parse(canon.Absolute(p.base, asked))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		if u, err = url.Parse(p.base); err != nil {
			u = new(url.URL)
		}
		var query string
		u.Path, query, _ = strings.Cut(asked, "?")
		u.Path, u.RawPath, u.RawQuery = "/"+strings.TrimLeft(u.Path, "/"), "", query
	}
	u.User, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", false
	// What a receiver unescapes, it may stumble over.
	if clean := printable(u.Path); clean != u.Path {
		u.Path, u.RawPath = clean, ""
	}
	if plain, err := url.QueryUnescape(u.RawQuery); err != nil || printable(plain) != plain {
		u.RawQuery = ""
	}
	u.RawQuery = escaped(u.RawQuery)
	if len(u.String()) > most {
		u.RawQuery = ""
	}
	for len(u.String()) > most && u.Path != "" { // not in the middle of an escape
		_, n := utf8.DecodeLastRuneInString(u.Path)
		u.Path, u.RawPath = u.Path[:len(u.Path)-n], ""
	}
	return u
}

// printable gives a text as valid UTF-8 without control characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r // an invalid byte is utf8.RuneError
	}, s)
}

// escaped gives a query as a URL has it, whatever somebody has written.
func escaped(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c > ' ' && c < 0x7f && !strings.ContainsRune("\"#<>\\^`{|}'", rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// leading gives as much of a text as has at most so many characters.
func leading(s string, characters int) string {
	for i := range s {
		if characters == 0 {
			return s[:i]
		}
		characters--
	}
	return s
}

// past gives a time that is not in the future, where a clock may have been.
func past(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

// milliseconds gives how long an answer took.
func milliseconds(e *store.Event) int64 { return e.Took.Milliseconds() }
