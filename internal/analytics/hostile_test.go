package analytics

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/store"
	mem "github.com/millrace/millrace/store/memory"
)

// storeWithSite returns a store with a site.
func storeWithSite(t *testing.T) *mem.Store {
	t.Helper()
	st := mem.New(nil)
	if _, err := st.Site(t.Context(), "site", "https://www.example.com/"); err != nil {
		t.Fatal(err)
	}
	return st
}

// hookReceiver is a webhook receiver that stores the received events.
type hookReceiver struct {
	mu     sync.Mutex
	events []hookEvent
	wrong  string
}

func (h *hookReceiver) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m struct{ Data struct{ Events []hookEvent } }
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil || !utf8.Valid(body) || !signed(r.Header, body) {
		h.wrong = fmt.Sprintf("%v: %.500q", err, body)
	}
	h.events = append(h.events, m.Data.Events...)
}

func (h *hookReceiver) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.events)
}

// toHook creates an exporter to a webhook on loopback.
func toHook(t *testing.T, usage store.Usage, st store.State, h http.Handler, now func() time.Time) *Exporter {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	target, err := ParseTarget("webhook=" + srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := webhook.ParseSecrets(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true, Delay: -1})
	t.Cleanup(client.CloseIdleConnections)
	e, err := NewExporter(usage, st, "site", target, client.HTTP(), &ExporterOptions{Secrets: secrets, Every: 5 * time.Millisecond, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Texts from requests are valid and of bounded length wherever they are exported or listed.
func TestHostileTexts(t *testing.T) {
	st := storeWithSite(t)
	r := New(st, "site", nil)
	now := time.Now()
	texts := []string{
		"<script>alert(document.cookie)</script>", "\x00\x1b[31m\x07\r\nSet-Cookie: a=b", "\xff\xfe\x80", "\u202e\u2066gro.elpmaxe\u2028",
		strings.Repeat("x", 1<<20), strings.Repeat("é", 1<<10), strings.Repeat("\x01", 300), "'; DROP TABLE usage_event; --", "\ufeff", "a\tb\u0085c",
	}
	for range 500 {
		b := make([]byte, rand.IntN(400))
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		texts = append(texts, string(b))
	}
	for _, text := range texts {
		r.Record(store.Event{
			Time: now, Bot: "GPTBot", Protocol: "openfeeder", Endpoint: store.EndpointSearch, Path: "/" + text, Query: text, Intent: text, Status: 200,
		})
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := new(hookReceiver)
	e := toHook(t, st, st.State(), h, nil)
	until(t, e, func() bool { return h.count() == len(texts) })
	if h.wrong != "" {
		t.Error(h.wrong)
	}
	for i, ev := range h.events {
		for _, text := range []string{ev.Path, ev.Query, ev.Intent} {
			if !utf8.ValidString(text) || len(text) > store.MaxEventText || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("event %d: %q of %.100q", i, text, texts[i])
			}
		}
		if !strings.HasPrefix(ev.Path, "/") {
			t.Errorf("event %d: path %q", i, ev.Path)
		}
	}
	top, err := st.Top(t.Context(), "site", store.TopQueries, now.Add(-48*time.Hour), now.Add(48*time.Hour), 1000)
	if err != nil || len(top) < len(texts)/2 {
		t.Errorf("%d queries: %v", len(top), err)
	}
	for _, item := range top {
		if !utf8.ValidString(item.Name) || strings.ContainsFunc(item.Name, unicode.IsControl) {
			t.Errorf("query %q", item.Name)
		}
	}
}

// Any number of bot names creates only a bounded number of sums.
func TestManyBots(t *testing.T) {
	n := 30_000 // a million gives the same figures, but takes longer
	if testing.Short() {
		n = 10_000
	}
	st := storeWithSite(t)
	r := New(st, "site", nil)
	now := time.Now().Truncate(time.Hour)
	for i := range n {
		name := fmt.Sprintf("Bot%07x", i*7919%n)
		r.Record(store.Event{Time: now.Add(time.Duration(i) * time.Millisecond), Bot: name, Family: name, Protocol: "html", Endpoint: store.EndpointFetch, Path: "/", Status: 200, Bytes: 1})
		if i%10_000 == 9_999 || i == n-1 {
			if err := r.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.Dropped() > 0 {
		t.Fatalf("%d dropped", r.Dropped())
	}
	if err := st.Tidy(t.Context(), store.Lease{}, "site", now.Add(-time.Hour), now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	sums, events := 0, int64(0)
	for s, err := range st.Sums(t.Context(), "site", store.SumQuery{Per: store.Hour}) {
		if err != nil {
			t.Fatal(err)
		}
		sums++
		events += s.Events
	}
	if sums > 5_000 || events != int64(n) {
		t.Errorf("%d sums of %d events", sums, events)
	}
	rows := 0
	saved, err := Sum(t.Context(), st, "site", now.Add(-24*time.Hour), now.Add(48*time.Hour), Pages{}, savings.Default(), func(DaySaved) { rows++ })
	if err != nil || saved.Total.Requests != int64(n) || len(saved.Bots) > 5_000 || rows > 5_000 {
		t.Errorf("%d rows of savings: %v", rows, err)
	}
	unusual, err := FindUnusual(t.Context(), st, "site", now.Add(-24*time.Hour), 10)
	if err != nil || len(unusual) > 1_000 {
		t.Errorf("%d unusual patterns: %v", len(unusual), err)
	}
}

// Clock changes do not reorder events, and an exporter sends each event once, whatever its
// time.
func TestClockSteps(t *testing.T) {
	st := storeWithSite(t)
	r := New(st, "site", nil)
	real := time.Now()
	now := real
	h := new(hookReceiver)
	e := toHook(t, st, st.State(), h, func() time.Time { return now })
	year := 365 * 24 * time.Hour
	want := 0
	for _, step := range []time.Duration{0, 10 * year, -10 * year, time.Hour, -55 * year, 0, -time.Minute, 200 * year} {
		now = real.Add(step)
		for i := range 150 {
			r.Record(store.Event{Time: now.Add(time.Duration(i) * time.Second), Bot: "GPTBot", Protocol: "html", Endpoint: store.EndpointFetch, Path: fmt.Sprintf("/%d", want), Status: 200})
			want++
		}
		if err := r.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, e, func() bool {
			return exported(t, st.State(), e) == uint64(want)
		})
	}
	if h.wrong != "" {
		t.Error(h.wrong)
	}
	if len(h.events) != want || e.Lag(t.Context()).Lost > 0 {
		t.Fatalf("received %d events of %d: %+v", len(h.events), want, e.Lag(t.Context()))
	}
	for i, ev := range h.events {
		if ev.Number != uint64(i+1) || ev.Path != fmt.Sprintf("/%d", i) {
			t.Fatalf("event %d is %+v", i, ev)
		}
	}
	// The recorder continues, and tidying with the correct clock keeps the events of the day.
	if err := st.Tidy(t.Context(), store.Lease{}, "site", real.Add(-time.Hour), real.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	left := map[bool]int{}
	for ev, err := range st.Events(t.Context(), "site", store.EventQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		left[ev.Time.Before(real.Add(-time.Hour))]++
	}
	if left[false] < 300 {
		t.Errorf("the remaining events are %v", left)
	}
	r.Record(store.Event{Time: real, Bot: "GPTBot", Protocol: "html", Endpoint: store.EndpointFetch, Path: "/last", Status: 200})
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, e, func() bool { return h.count() > want })
	if last := h.events[len(h.events)-1]; last.Path != "/last" || last.Number != uint64(want+1) {
		t.Errorf("%+v", last)
	}
}
