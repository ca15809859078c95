package push

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// world is a site with a hub and a subscriber, all in memory.
type world struct {
	t    *testing.T
	sub  *Subscriber
	site map[string]string // documents of the site, with their type in the first line
	log  bytes.Buffer      // read it only after Keep has returned

	mu     sync.Mutex
	asked  []string   // method and URL of each request, such as "GET https://…"
	form   url.Values // of the last request to the hub
	answer int        // of the hub; 0 = 202
	lease  string     // lease that the hub grants; "" = the requested one
	deny   string     // reason with which the hub denies; "" = it does not
	dumb   bool       // the hub sends no verification request
}

const feed = "application/atom+xml\n" + `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">
<link rel="self" href="https://site.example/feed.atom"/><link rel="hub" href="https://hub.example/"/><entry/></feed>`

func newWorld(t *testing.T) *world {
	w := &world{t: t, site: map[string]string{
		"/":          "text/html\n" + `<html><head><link rel="alternate" type="application/atom+xml" href="/feed.atom"></head></html>`,
		"/feed.atom": feed,
	}}
	var err error
	if w.sub, err = NewSubscriber("https://me.example/push/", &SubscriberOptions{Logger: slog.New(slog.NewTextHandler(&w.log, nil))}); err != nil {
		t.Fatal(err)
	}
	return w
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := f(r)
	resp.Request = r
	return resp, nil
}

// client returns a client whose requests world handles.
func (w *world) client() *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) *http.Response {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = append(w.asked, r.Method+" "+r.URL.String())
		rec := httptest.NewRecorder()
		if r.URL.Host == "hub.example" {
			w.hub(rec, r)
			return rec.Result()
		}
		kind, body, ok := strings.Cut(w.site[r.URL.Path], "\n")
		if !ok {
			rec.WriteHeader(http.StatusNotFound)
			return rec.Result()
		}
		for _, line := range strings.Split(kind, ";link=")[1:] {
			rec.Header().Add("Link", line)
		}
		rec.Header().Set("Content-Type", strings.Split(kind, ";link=")[0])
		_, _ = rec.WriteString(body)
		return rec.Result()
	})}
}

// hub implements a hub that verifies each subscription at once.
func (w *world) hub(rec *httptest.ResponseRecorder, r *http.Request) {
	_ = r.ParseForm()
	w.form = r.PostForm
	rec.WriteHeader(cmp.Or(w.answer, http.StatusAccepted))
	if w.answer >= 300 || w.dumb {
		return
	}
	q := url.Values{
		"hub.mode": {"subscribe"}, "hub.topic": {w.form.Get("hub.topic")}, "hub.challenge": {"<b>7"},
		"hub.lease_seconds": {cmp.Or(w.lease, w.form.Get("hub.lease_seconds"))},
	}
	if w.deny != "" {
		q = url.Values{"hub.mode": {"denied"}, "hub.topic": {w.form.Get("hub.topic")}, "hub.reason": {w.deny}}
	}
	code, body := w.callback(http.MethodGet, w.form.Get("hub.callback")+"?"+q.Encode(), "", "")
	if w.deny == "" && (code != http.StatusOK || body != "<b>7") {
		w.t.Errorf("the verification: %d %q", code, body)
	}
}

// callback sends a request to the subscriber, as a hub does.
func (w *world) callback(method, target, body, signature string) (int, string) {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if signature != "" {
		r.Header.Set("X-Hub-Signature", signature)
	}
	if _, ok := w.sub.Scope(r); !ok {
		return 0, "" // not a callback of the subscriber
	}
	rec := httptest.NewRecorder()
	if err := w.sub.Serve(rec, r, nil); err != nil {
		w.t.Errorf("%s %s: %v", method, target, err)
	}
	if rec.Body.Len() > 0 && (!strings.HasPrefix(rec.Header().Get("Content-Type"), "text/plain") || rec.Header().Get("X-Content-Type-Options") != "nosniff") {
		w.t.Errorf("the response with a challenge could be rendered as a page: %v", rec.Header())
	}
	return rec.Code, rec.Body.String()
}

// set changes the behavior of the site and the hub.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.asked
	w.asked = nil
	return out
}

// keep maintains a subscription until end is called, which returns the error of Keep.
func (w *world) keep(earlier Subscription) (saved func() Subscription, hints func() int, end func() error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var mu sync.Mutex
	var last Subscription
	n := 0
	done := make(chan error, 1)
	go func() {
		done <- Keep(ctx, w.sub, w.client(), w.client(), "https://site.example/", earlier, func(s Subscription) {
			mu.Lock()
			defer mu.Unlock()
			last = s
		}, func() {
			mu.Lock()
			defer mu.Unlock()
			n++
		})
	}()
	synctest.Wait()
	return func() Subscription {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return last
		}, func() int {
			mu.Lock()
			defer mu.Unlock()
			return n
		}, func() error {
			cancel()
			return <-done
		}
}

func sign(method, secret, body string) string {
	mac := hmac.New(digests[method], []byte(secret))
	mac.Write([]byte(body))
	return method + "=" + hex.EncodeToString(mac.Sum(nil))
}

// A subscription is requested, confirmed, stored and renewed. The next process continues it
// without a request.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		start := time.Now()
		saved, hints, end := w.keep(Subscription{})
		sub := saved()
		if sub.Topic != (Topic{"https://site.example/feed.atom", "https://hub.example/"}) || !sub.Until.Equal(start.Add(leaseAsked)) ||
			!strings.HasPrefix(sub.Callback, "https://me.example/push/") || len(sub.Secret) < 32 || w.form.Get("hub.secret") != sub.Secret {
			t.Fatalf("%+v, %v", sub, w.form)
		}
		if got := len(w.requests()); got != 3 {
			t.Errorf("%d requests", got)
		}
		for i, tt := range []struct {
			signature string
			hints     int
		}{
			{sign("sha256", sub.Secret, "news"), 1},
			{sign("sha1", sub.Secret, "news"), 1},
			{sign("sha384", sub.Secret, "news"), 1},
			{sign("sha512", sub.Secret, "news"), 1},
			{sign("sha256", sub.Secret, "other news"), 0},
			{sign("sha256", "guessed", "news"), 0},
			{"md5=00", 0},
			{"sha256=", 0},
			{"sha256=zz", 0},
			{"", 0},
		} {
			before := hints()
			if code, _ := w.callback(http.MethodPost, sub.Callback, "news", tt.signature); code != http.StatusAccepted || hints()-before != tt.hints {
				t.Errorf("%d: signature %q: %d, %d hints", i, tt.signature, code, hints()-before)
			}
		}
		topic := "hub.topic=" + url.QueryEscape(sub.URL)
		for q, want := range map[string]int{
			"hub.mode=subscribe&hub.challenge=x&hub.topic=https://site.example/other": http.StatusNotFound,
			"hub.mode=unsubscribe&hub.challenge=x&" + topic:                           http.StatusNotFound,
			"hub.mode=subscribe&" + topic:                                             http.StatusNotFound,
			"hub.mode=denied&hub.topic=https://site.example/other":                    http.StatusNotFound,
			"": http.StatusNotFound,
		} {
			if code, _ := w.callback(http.MethodGet, sub.Callback+"?"+q, "", ""); code != want {
				t.Errorf("%s: %d", q, code)
			}
		}
		long := httptest.NewRequest(http.MethodPost, sub.Callback, nil)
		long.Header.Set("X-Hub-Signature", sign("sha256", sub.Secret, "news"))
		long.Body = http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("news")), 3)
		before := hints()
		if err := w.sub.Serve(httptest.NewRecorder(), long, nil); !errors.Is(err, millrace.ErrTooLarge) || hints() != before {
			t.Errorf("a message that is too long: %v", err)
		}
		other := strings.Repeat("0", tokenLength)
		if code, _ := w.callback(http.MethodPost, "https://me.example/push/"+other, "news", ""); code != http.StatusGone {
			t.Errorf("an unknown callback: %d", code)
		}
		if code, _ := w.callback(http.MethodPost, "https://me.example/push/", "news", ""); code != 0 {
			t.Errorf("no callback: %d", code)
		}
		time.Sleep(leaseAsked)
		again := saved()
		if again.Callback != sub.Callback || !again.Until.Equal(start.Add(leaseAsked*4/5+leaseAsked)) {
			t.Errorf("renewed: %+v", again)
		}
		if err := end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.requests()
		if code, _ := w.callback(http.MethodPost, sub.Callback, "news", sign("sha256", sub.Secret, "news")); code != http.StatusGone {
			t.Errorf("after the end: %d", code)
		}

		_, hints, end = w.keep(again)
		if code, _ := w.callback(http.MethodPost, sub.Callback, "news", sign("sha256", sub.Secret, "news")); code != http.StatusAccepted || hints() != 1 || w.requests() != nil {
			t.Errorf("in the next process: %d, %d hints", code, hints())
		}
		_ = end()
		again.Callback = strings.Replace(again.Callback, "me.example", "old.example", 1)
		saved, _, end = w.keep(again)
		if len(w.requests()) != 3 || saved().Callback == sub.Callback {
			t.Error("a subscription for another callback is used")
		}
		_ = end()
	})
}

// A failure of the hub is retried; a denial is not.
func TestKeepFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer = http.StatusNotFound
		saved, _, end := w.keep(Subscription{})
		time.Sleep(200 * time.Second)           // the fourth attempt starts after 210 seconds or later
		if got := len(w.requests()); got != 9 { // three attempts: at once, within one minute, within three minutes
			t.Errorf("%d requests", got)
		}
		w.set(func() { w.answer, w.dumb = 0, true })
		time.Sleep(10 * time.Minute)
		if !saved().Until.IsZero() {
			t.Errorf("a subscription was stored without a confirmation: %+v", saved())
		}
		w.set(func() { w.dumb, w.lease = false, "1" })
		time.Sleep(2 * time.Hour)
		if left := time.Until(saved().Until); left <= 0 || left > minLease {
			t.Errorf("%s of a lease of a second", left)
		}
		w.set(func() { w.deny = "no\nmore" })
		time.Sleep(time.Hour)
		if err := end(); !errors.Is(err, millrace.ErrForbidden) || millrace.ErrorCode(err) != "hub-denied" {
			t.Error(err)
		}
		_, token, _ := strings.Cut(w.form.Get("hub.callback"), "/push/")
		if log := w.log.String(); !isToken(token) || !strings.Contains(log, "https://me.example/push") || strings.Contains(log, token) {
			t.Errorf("the log contains the callback: %s", log)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		delete(w.site, "/feed.atom")
		_, _, end := w.keep(Subscription{})
		if err := end(); !errors.Is(err, millrace.ErrNotFound) {
			t.Error(err)
		}
		w.site["/"] = "text/html;link=<http://hub.example/>; rel=hub\n"
		w.requests()
		_, _, end = w.keep(Subscription{})
		if err := end(); !errors.Is(err, millrace.ErrNotFound) || len(w.requests()) != 1 {
			t.Errorf("from https to http: %v", err)
		}
	})
}

// A topic is found in every place that WebSub allows.
func TestFind(t *testing.T) {
	const hub, self = "https://hub.example/", "https://site.example/self"
	for name, tt := range map[string]struct {
		site map[string]string
		want string // topic; "" = not found
		most int    // maximum number of requests
	}{
		"a header": {map[string]string{"/": "text/html;link=<" + hub + `>; rel="hub", <self>; rel=self` + "\n"}, self, 1},
		"no self":  {map[string]string{"/": "text/html;link=<" + hub + ">; rel=hub\n"}, "https://site.example/", 1},
		"elements": {map[string]string{"/": "text/html\n" + `<link rel=hub href=` + hub + `><link rel=self href=/self>`}, self, 1},
		"a header takes precedence": {map[string]string{"/": "text/html;link=<self>; rel=self\n" +
			`<link rel=hub href=` + hub + `><link rel=self href=/other>`}, self, 1},
		"RSS in Latin-1": {map[string]string{
			"/":    "text/html;link=</rss>; rel=alternate; type=application/rss+xml\n",
			"/rss": "application/rss+xml\n" + `<?xml version="1.0" encoding="ISO-8859-1"?><rss xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>` + "\xfc" + `</title><link>https://site.example/</link><atom:link href="` + hub + `" rel="hub"/><atom:link href="/self" rel="self"/><item>`,
		}, self, 2},
		"the header of a JSON Feed": {map[string]string{
			"/":     "text/html;link=</json>; rel=alternate; type=application/feed+json\n",
			"/json": "application/feed+json;link=<" + hub + ">; rel=hub;link=<self>; rel=self\n{}",
		}, self, 2},
		"a hub after the first entry": {map[string]string{
			"/":     "text/html;link=</atom>; rel=alternate; type=application/atom+xml\n",
			"/atom": "application/atom+xml\n<feed><entry><link rel='hub' href='" + hub + "'/></entry></feed>",
		}, "", 2},
		"the third feed": {map[string]string{
			"/":   "text/html\n" + strings.Repeat(`<link rel=alternate type="application/rss+xml" href=/no>`, 2) + `<link rel=alternate type="application/atom+xml" href=/yes>` + strings.Repeat(`<link rel=alternate type="application/rss+xml" href=/no>`, 9),
			"/no": "application/rss+xml\n<rss/>", "/yes": "application/atom+xml;link=<" + hub + ">; rel=hub;link=<self>; rel=self\n<feed/>",
		}, self, 4},
		"another scheme": {map[string]string{"/": "text/html\n<link rel=hub href=javascript:alert(1)>"}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.site = tt.site
			got, err := Find(t.Context(), w.client(), "https://site.example/")
			if tt.want == "" {
				if !errors.Is(err, millrace.ErrNotFound) {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if n := len(w.requests()); err != nil || got != (Topic{tt.want, hub}) || n > tt.most {
				t.Errorf("%+v, %v, %d requests", got, err, n)
			}
		})
	}
}

// Any feed can be parsed in finite time, and its links have valid URLs.
func FuzzFeedLinks(f *testing.F) {
	at, _ := url.Parse("https://site.example/feed")
	f.Add([]byte(strings.SplitN(feed, "\n", 2)[1]))
	f.Add([]byte("\ufeff<rss><channel><link>x</link>"))
	f.Add([]byte(`<?xml version="1.0" encoding="x"?><a b="&c;"><link rel=hub href=/>`))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, l := range feedLinks(content, at) {
			if u, err := url.Parse(l.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
				t.Errorf("%q: %v", l.URL, err)
			}
		}
	})
}

func ExampleFind() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Link", `<https://hub.example/>; rel="hub", <https://site.example/news>; rel="self"`)
	}))
	defer site.Close()
	client := fetch.New(&fetch.Options{AllowPrivate: true})
	topic, err := Find(context.Background(), client.HTTP(), site.URL+"/")
	fmt.Println(topic.URL, topic.Hub, err)
	// Output: https://site.example/news https://hub.example/ <nil>
}
