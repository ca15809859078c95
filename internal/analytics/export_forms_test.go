package analytics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/store"
)

const (
	websiteID  = "3f0f2f62-9a53-4c3f-8a83-3a6c9b4d7c11"
	hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// hostile returns events with hostile texts, and with texts of the maximum length that a store
// keeps.
func hostile(now time.Time) []store.Event {
	long := strings.Repeat("語", store.MaxEventText/3)
	texts := []string{
		"/about", "/search?q=a b&c=%zz<script>", "<script>alert(1)</script>", "//evil.example/x", "https://evil.example/\"><img src=x>",
		"javascript:alert(1)", "http://[::1", "/a\\b\u2028\u202e\"'`{}|^", "/%2e%2e/%2e%2e/etc/passwd", "=HYPERLINK(\"http://evil\")", "/" + long,
		"", "?", "/%", "/" + strings.Repeat("%", 255), "/a#b?c", "/%00/%ff/%0d%0a", "/?utm_source=%00", "/?a=%ff", "/" + strings.Repeat("\"", 255),
	}
	var out []store.Event
	for i, text := range texts {
		out = append(out, store.Event{
			Time: now.Add(-time.Hour + time.Duration(i)*time.Second), Bot: "GPTBot", Family: "openai", Identity: store.Verified, Protocol: "openfeeder",
			Endpoint: store.EndpointSearch, Path: text, Query: text, Intent: text, Results: 7, Status: 200, Bytes: 512, Size: 2048,
			HTML: 40000, Received: 9000, Took: 1500 * time.Microsecond,
		})
	}
	out = append(out,
		store.Event{Time: now.Add(-time.Minute), Bot: "=cmd|' /C calc'!A0" + long, Protocol: "tct-01", Endpoint: store.EndpointFetch, Path: "/a", Status: 304, Cached: true},
		store.Event{Time: now.Add(48 * time.Hour), Bot: "ClaudeBot", Family: "anthropic", Protocol: "site", Endpoint: store.EndpointDiscovery, Path: "/robots.txt", Status: 200},
		store.Event{Time: now.Add(-time.Minute), Bot: "other", Protocol: "html", Endpoint: "no such \"thing\"", Path: "/x", Identity: store.Forged, Status: 0})
	return out
}

// form is a receiver that checks its requests.
type form struct {
	check func(r *http.Request, body []byte) (events int, err error)
	write func(w http.ResponseWriter)

	mu     sync.Mutex
	events int
	wrong  []string
}

func (f *form) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	n := 0
	switch {
	case err != nil:
	case r.Method != http.MethodPost:
		err = fmt.Errorf("method %s", r.Method)
	case r.Header.Get("Content-Type") != "application/json":
		err = fmt.Errorf("Content-Type %q", r.Header.Get("Content-Type"))
	case !utf8.Valid(body):
		err = fmt.Errorf("not UTF-8: %q", body)
	case r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Cookie") != "":
		err = fmt.Errorf("the address or cookie of a client: %v", r.Header)
	default:
		n, err = f.check(r, body)
	}
	f.mu.Lock()
	f.events += n
	if err != nil {
		f.wrong = append(f.wrong, fmt.Sprintf("%v\n%s", err, body))
	}
	f.mu.Unlock()
	if f.write != nil {
		f.write(w)
	}
}

// hookEvent is an event in a webhook message.
type hookEvent struct {
	Number   uint64    `json:"number"`
	Time     time.Time `json:"time"`
	Bot      string    `json:"bot_name"`
	Family   string    `json:"bot_family"`
	Identity string    `json:"identity"`
	Protocol string    `json:"protocol"`
	Endpoint string    `json:"endpoint"`
	Path     string    `json:"path"`
	Query    string    `json:"query"`
	Intent   string    `json:"intent"`
	Results  int64     `json:"results"`
	Status   int       `json:"status"`
	Outcome  string    `json:"outcome"`
	Cached   bool      `json:"cached"`
	Bytes    int64     `json:"bytes"`
	Size     int64     `json:"size"`
	HTML     int64     `json:"html"`
	Received int64     `json:"html_received"`
	Response float64   `json:"response_ms"`
}

// exportAll exports the events of m to a receiver on the loopback interface.
func exportAll(t *testing.T, f *form, kind, query string, m *memory) *Exporter {
	t.Helper()
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	target, err := ParseTarget(kind + "=" + srv.URL + query)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := webhook.ParseSecrets(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true, Delay: -1})
	t.Cleanup(client.CloseIdleConnections)
	e, err := NewExporter(m, m, "site", target, client.HTTP(), &ExporterOptions{Base: "https://www.example.com/", Secrets: secrets, Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	until(t, e, func() bool {
		return exported(t, m, e) == uint64(len(m.all()))
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, wrong := range f.wrong {
		t.Error(wrong)
	}
	return e
}

// until runs an exporter until so returns true.
func until(t *testing.T, e *Exporter, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); e.Run(ctx) }()
	for !so() {
		if ctx.Err() != nil {
			t.Fatalf("the exporter does not finish: %+v", e.Lag(t.Context()))
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
}

func recorded(t *testing.T, events []store.Event) *memory {
	t.Helper()
	m := new(memory)
	if err := m.Record(t.Context(), "site", events); err != nil {
		t.Fatal(err)
	}
	return m
}

// strictly decodes JSON and rejects unknown members.
func strictly(body []byte, v any) error {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// plainURL returns an error unless text is a valid URL of a page.
func plainURL(text string, most int) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return err
	case u.Scheme != "https" || u.Host != "www.example.com" && u.Host != "evil.example": // a page may belong to another host
		return fmt.Errorf("URL %q", text)
	case len(text) > most:
		return fmt.Errorf("a URL of %d bytes", len(text))
	case strings.ContainsAny(text, " <>\"`{}|^\\#") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("URL %q is not escaped", text)
	}
	for _, part := range []string{u.EscapedPath(), u.RawQuery} {
		plain, err := url.QueryUnescape(part)
		if err != nil {
			return err
		}
		if !utf8.ValidString(plain) || strings.ContainsFunc(plain, unicode.IsControl) {
			return fmt.Errorf("URL %q is %q", text, plain)
		}
	}
	return nil
}

// isBot matches user agents that the providers treat as bots. It contains those of their
// patterns that could match a user agent of millrace.
var isBot = regexp.MustCompile(`(?i)bot|crawl|spider|http|server|monitor|fetch|compatible|^[^ ]+$|^\S+/\S*( \(.*\))?$|[/\w];`)

func TestUmami(t *testing.T) {
	now := time.Now()
	f := &form{}
	f.check = func(r *http.Request, body []byte) (int, error) {
		var m struct {
			Type    string `json:"type"`
			Payload struct {
				Website, Hostname, URL, Name, ID string
				Timestamp                        *int64 // no fraction
				Data                             map[string]any
			} `json:"payload"`
		}
		if err := strictly(body, &m); err != nil {
			return 0, err
		}
		p := m.Payload
		switch {
		case r.URL.Path != "/base/api/send" || r.URL.RawQuery != "":
			return 0, fmt.Errorf("URL %s", r.URL)
		case isBot.MatchString(r.UserAgent()):
			return 0, fmt.Errorf("User-Agent %q is that of a bot", r.UserAgent())
		case m.Type != "event" || p.Website != websiteID:
			return 0, fmt.Errorf("type %q, website %q", m.Type, p.Website)
		case p.Name == "" || len(p.Name) > 50 || strings.ContainsAny(p.Name[:1], "=+-@\t\r"):
			return 0, fmt.Errorf("name %q", p.Name)
		case utf8.RuneCountInString(p.ID) > 50 || len(p.Hostname) > 100 || strings.Contains(p.Hostname, ":"):
			return 0, fmt.Errorf("id %q, hostname %q", p.ID, p.Hostname)
		case p.Timestamp == nil || *p.Timestamp < now.Add(-2*time.Hour).Unix() || *p.Timestamp > time.Now().Unix():
			return 0, fmt.Errorf("timestamp %v", p.Timestamp)
		}
		for key, v := range p.Data {
			if s, ok := v.(string); ok && (len(key) > 500 || utf8.RuneCountInString(s) > 500) {
				return 0, fmt.Errorf("data %q: %q", key, s)
			}
		}
		return 1, plainURL(p.URL, 500)
	}
	f.write = func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"cache":"x","sessionId":"y","visitId":"z"}`)
	}
	e := exportAll(t, f, Umami, "/base/?website="+websiteID, recorded(t, hostile(now)))
	if l := e.Lag(t.Context()); f.events != len(hostile(now)) || l.Sent != uint64(f.events) || l.Ignored+l.Lost+l.Refused > 0 {
		t.Errorf("%d events: %+v", f.events, l)
	}

	// Umami reports only in the body that it treats the program as a bot.
	f = &form{check: func(*http.Request, []byte) (int, error) { return 1, nil }, write: func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"beep":"boop"}`) }}
	if l := exportAll(t, f, Umami, "/?website="+websiteID, recorded(t, hostile(now))).Lag(t.Context()); l.Ignored != uint64(f.events) || l.Sent > 0 {
		t.Errorf("%+v", l)
	}
}

func TestPlausible(t *testing.T) {
	now := time.Now()
	f := &form{}
	f.check = func(r *http.Request, body []byte) (int, error) {
		var m struct {
			Name, Domain, URL string
			Interactive       *bool
			Props             map[string]string // scalars; empty values are dropped
		}
		if err := strictly(body, &m); err != nil {
			return 0, err
		}
		switch {
		case r.URL.Path != "/api/event" || r.URL.RawQuery != "":
			return 0, fmt.Errorf("URL %s", r.URL)
		case isBot.MatchString(r.UserAgent()):
			return 0, fmt.Errorf("User-Agent %q is that of a bot", r.UserAgent())
		case m.Name == "" || len(m.Name) > 120 || m.Name == "pageview" || m.Name == "engagement":
			return 0, fmt.Errorf("name %q", m.Name)
		case m.Domain != "example.com" || m.Interactive == nil || *m.Interactive:
			return 0, fmt.Errorf("domain %q, interactive %v", m.Domain, m.Interactive)
		case len(m.Props) == 0 || len(m.Props) > 30:
			return 0, fmt.Errorf("%d props", len(m.Props))
		}
		for key, value := range m.Props {
			if len(key) > 300 || value == "" || len(value) > 2000 {
				return 0, fmt.Errorf("prop %q: %q", key, value)
			}
		}
		return 1, plainURL(m.URL, 2000)
	}
	f.write = func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted); _, _ = io.WriteString(w, "ok") }
	e := exportAll(t, f, Plausible, "/api/event?domain=example.com", recorded(t, hostile(now)))
	if l := e.Lag(t.Context()); f.events != len(hostile(now)) || l.Sent != uint64(f.events) || l.Ignored > 0 {
		t.Errorf("%d events: %+v", f.events, l)
	}

	f = &form{check: func(*http.Request, []byte) (int, error) { return 1, nil }, write: func(w http.ResponseWriter) {
		w.Header().Set("x-plausible-dropped", "1")
		w.WriteHeader(http.StatusAccepted)
	}}
	if l := exportAll(t, f, Plausible, "?domain=example.com", recorded(t, hostile(now))).Lag(t.Context()); l.Ignored != uint64(f.events) || l.Sent > 0 {
		t.Errorf("%+v", l)
	}
}

// ga4Reserved lists the reserved names of events, ga4Prefixes the reserved prefixes.
var (
	ga4Reserved = map[string]bool{
		"ad_activeview": true, "ad_click": true, "ad_exposure": true, "ad_query": true, "ad_reward": true, "adunit_exposure": true,
		"app_exception": true, "app_remove": true, "app_update": true, "click": true, "error": true, "file_download": true,
		"first_open": true, "first_visit": true, "form_start": true, "form_submit": true, "os_update": true, "page_view": true,
		"scroll": true, "session_start": true, "user_engagement": true, "video_complete": true, "video_progress": true,
		"video_start": true, "view_search_results": true,
	}
	ga4Prefixes = regexp.MustCompile(`^(_|firebase_|ga_|google_|gtag\.)`)
	ga4Name     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,39}$`)
	ga4Client   = regexp.MustCompile(`^\d+\.\d+$`)
)

func TestGA4(t *testing.T) {
	now := time.Now()
	events := hostile(now)
	for i := range 120 {
		events = append(events, store.Event{Time: now.Add(-time.Duration(200-i) * time.Second), Bot: []string{"GPTBot", "ClaudeBot"}[i%2], Protocol: "scp", Endpoint: store.EndpointIndex, Path: "/" + strconv.Itoa(i), Status: 200})
	}
	clients := map[string]string{} // bots by client
	f := &form{}
	requests := 0
	f.check = func(r *http.Request, body []byte) (int, error) {
		var m struct {
			Client    string            `json:"client_id"`
			Timestamp int64             `json:"timestamp_micros"`
			Consent   map[string]string `json:"consent"`
			Events    []struct {
				Name      string         `json:"name"`
				Timestamp int64          `json:"timestamp_micros"`
				Params    map[string]any `json:"params"`
			} `json:"events"`
		}
		if err := strictly(body, &m); err != nil {
			return 0, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		requests++
		q := r.URL.Query()
		switch {
		case r.URL.Path != "/mp/collect" || len(q) != 2 || q.Get("measurement_id") != "G-ABC1234567" || q.Get("api_secret") != "s3cret&=":
			return 0, fmt.Errorf("URL %s", r.URL)
		case len(body) > 130_000:
			return 0, fmt.Errorf("%d bytes", len(body))
		case len(m.Events) == 0 || len(m.Events) > 25:
			return 0, fmt.Errorf("%d events", len(m.Events))
		case !ga4Client.MatchString(m.Client):
			return 0, fmt.Errorf("client_id %q", m.Client)
		case m.Consent["ad_user_data"] != "DENIED" || m.Consent["ad_personalization"] != "DENIED":
			return 0, fmt.Errorf("consent %v", m.Consent)
		}
		for _, e := range m.Events {
			if !ga4Name.MatchString(e.Name) || ga4Reserved[e.Name] || ga4Prefixes.MatchString(e.Name) {
				return 0, fmt.Errorf("event %q", e.Name)
			}
			if at := time.UnixMicro(e.Timestamp); at.Before(now.Add(-72*time.Hour)) || at.After(time.Now()) {
				return 0, fmt.Errorf("timestamp %s", at)
			}
			if len(e.Params) > 25 {
				return 0, fmt.Errorf("%d parameters", len(e.Params))
			}
			for key, value := range e.Params {
				if !ga4Name.MatchString(key) || ga4Prefixes.MatchString(key) {
					return 0, fmt.Errorf("parameter %q", key)
				}
				most := 100
				if key == "page_location" {
					most = 1000
				}
				switch v := value.(type) {
				case string:
					if utf8.RuneCountInString(v) > most {
						return 0, fmt.Errorf("parameter %s has %d characters", key, utf8.RuneCountInString(v))
					}
				case float64:
				default:
					return 0, fmt.Errorf("parameter %s is %T", key, value)
				}
			}
			if s, _ := e.Params["session_id"].(string); !regexp.MustCompile(`^\d+$`).MatchString(s) || e.Params["engagement_time_msec"] != 1.0 {
				return 0, fmt.Errorf("session_id %v, engagement_time_msec %v", e.Params["session_id"], e.Params["engagement_time_msec"])
			}
			bot, _ := e.Params["bot"].(string)
			if was, ok := clients[m.Client]; ok && was != bot {
				return 0, fmt.Errorf("%q and %q are one client", was, bot)
			}
			clients[m.Client] = bot
			if err := plainURL(e.Params["page_location"].(string), 1000); err != nil {
				return 0, err
			}
		}
		return len(m.Events), nil
	}
	f.write = func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }
	e := exportAll(t, f, GA4, "?measurement_id=G-ABC1234567&api_secret=s3cret%26%3d", recorded(t, events))
	if l := e.Lag(t.Context()); f.events != len(events) || l.Sent != uint64(f.events) || len(clients) != 4 || requests > 9 {
		t.Errorf("%d events of %d clients in %d requests: %+v", f.events, len(clients), requests, l)
	}
}

func TestWebhook(t *testing.T) {
	now := time.Now()
	events := hostile(now)
	for i := range 300 {
		events = append(events, store.Event{Time: now, Bot: "GPTBot", Protocol: "scp", Endpoint: store.EndpointIndex, Path: "/" + strconv.Itoa(i), Status: 200})
	}
	next := uint64(1)
	f := &form{}
	f.check = func(r *http.Request, body []byte) (int, error) {
		var m struct {
			Type      string
			Timestamp time.Time
			Data      struct {
				Site   string
				Events []hookEvent
			}
		}
		if err := strictly(body, &m); err != nil {
			return 0, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case r.URL.String() != "/in/hunter2?t=hunter2":
			return 0, fmt.Errorf("URL %s", r.URL)
		case r.Header.Get("Webhook-Id") == "" || !signed(r.Header, body):
			return 0, fmt.Errorf("the message is not signed: %v", r.Header)
		case m.Type != "site.requested" || m.Data.Site != "site" || m.Timestamp.IsZero():
			return 0, fmt.Errorf("type %q, site %q at %s", m.Type, m.Data.Site, m.Timestamp)
		case len(m.Data.Events) == 0 || len(m.Data.Events) > 100:
			return 0, fmt.Errorf("%d events", len(m.Data.Events))
		}
		for _, e := range m.Data.Events {
			want := events[e.Number-1]
			if want.Status != http.StatusOK && want.Status != http.StatusNotModified {
				want.Path = "" // paths of missing pages are not exported
			}
			if e.Number != next || e.Bot != want.Bot || e.Path != want.Path || e.Query != want.Query || e.Status != want.Status || !e.Time.Equal(want.Time) || e.Response != float64(want.Took.Microseconds())/1000 {
				return 0, fmt.Errorf("event %+v, want number %d and %+v", e, next, want)
			}
			next++
		}
		return len(m.Data.Events), nil
	}
	e := exportAll(t, f, Webhook, "/in/hunter2?t=hunter2", recorded(t, events))
	if l := e.Lag(t.Context()); f.events != len(events) || l.Sent != uint64(f.events) {
		t.Errorf("%d events: %+v", f.events, l)
	}
}
