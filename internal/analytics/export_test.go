package analytics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/pipenet"
	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/store"
)

// network is a receiver on a network in memory, for fake time.
type network struct {
	answer func(w http.ResponseWriter, request int, numbers []string)

	mu       sync.Mutex
	requests int
	most     int // maximum of concurrent requests
	now      int
	at       []time.Time
	taken    []string // paths of the events accepted with 2xx, in order

	listener *pipenet.Listener // nil until the first export
}

// ServeHTTP identifies the events by their paths, in every kind of message.
func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		URL     string `json:"url"`
		Payload struct {
			URL string `json:"url"`
		} `json:"payload"`
		Data struct {
			Events []struct {
				Path string `json:"path"`
			} `json:"events"`
		} `json:"data"`
		Events []struct {
			Params struct {
				URL string `json:"page_location"`
			} `json:"params"`
		} `json:"events"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		panic(err)
	}
	var about []string
	for _, u := range []string{m.URL, m.Payload.URL} {
		if u != "" {
			about = append(about, u)
		}
	}
	for _, e := range m.Data.Events {
		about = append(about, e.Path)
	}
	for _, e := range m.Events {
		about = append(about, e.Params.URL)
	}
	for i, u := range about {
		about[i] = u[strings.LastIndexByte(u, '/')+1:]
	}
	n.mu.Lock()
	n.requests++
	n.now++
	n.most = max(n.most, n.now)
	n.at = append(n.at, time.Now())
	request := n.requests
	n.mu.Unlock()
	rec := &noted{ResponseWriter: w}
	if n.answer != nil {
		n.answer(rec, request, about)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now--
	if rec.status/100 == 2 || rec.status == 0 {
		n.taken = append(n.taken, about...)
	}
}

// receivedEvents returns the received events in order, each once, and the number of repetitions.
func (n *network) receivedEvents() (all []string, again int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := map[string]bool{}
	for _, t := range n.taken {
		if seen[t] {
			again++
			continue
		}
		seen[t] = true
		all = append(all, t)
	}
	return all, again
}

type noted struct {
	http.ResponseWriter
	status int
}

func (w *noted) WriteHeader(status int) { w.status = status; w.ResponseWriter.WriteHeader(status) }

var targets = map[string]string{
	Umami:     "umami=https://secret.example/?website=" + websiteID,
	Plausible: "plausible=https://secret.example/?domain=example.com",
	GA4:       "ga4=https://secret.example/?measurement_id=G-ABC1234567&api_secret=hunter2",
	Webhook:   "webhook=https://secret.example/hunter2?t=hunter2",
}

// exporting returns an exporter to a receiver in memory. It must run in a bubble of fake time.
func exporting(t *testing.T, n *network, kind string, usage usageState, log io.Writer) *Exporter {
	t.Helper()
	if n.listener == nil {
		srv := &http.Server{Handler: n}
		n.listener = pipenet.Serve(srv)
		t.Cleanup(func() { _ = srv.Close() })
	}
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true, Delay: -1, Timeout: 30 * time.Second, Dial: n.listener.Dial})
	t.Cleanup(client.CloseIdleConnections)
	target, err := ParseTarget(strings.Replace(targets[kind], "https:", "http:", 1))
	if kind == GA4 { // without TLS, only this machine is allowed
		target, err = ParseTarget(strings.Replace(targets[kind], "https://secret.example", "http://localhost", 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := webhook.ParseSecrets(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	o := &ExporterOptions{Base: "https://example.com/", Secrets: secrets, Every: 10 * time.Minute}
	if log != nil {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	e, err := NewExporter(usage, usage, "site", target, client.HTTP(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// run runs an exporter for a time.
func run(t *testing.T, e *Exporter, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	e.Run(ctx)
}

// visits records n events, whose paths are their numbers.
func visits(m *memory, n int) {
	for range n {
		m.mu.Lock()
		number := len(m.events) + 1
		m.mu.Unlock()
		_ = m.Record(context.Background(), "", []store.Event{{
			Time: time.Now(), Bot: "GPTBot", Protocol: "tct-01", Endpoint: store.EndpointFetch, Path: fmt.Sprintf("/%d", number), Status: 200,
		}})
	}
}

func numbers(from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

// sorted sorts decimal numbers by value.
func sorted(s []string) []string {
	return slices.SortedFunc(slices.Values(s), func(a, b string) int {
		return len(a) - len(b) + strings.Compare(a, b)/(1+abs(len(a)-len(b))*1000)
	})
}

func abs(n int) int { return max(n, -n) }

// days lists the failures that are tested for each kind. For Umami, all are tested.
var days = map[string]string{Webhook: "slow 500, silent, wrong setup", GA4: "slow 500", Plausible: "503"}

// A receiver that is down or fails slowly for a day finally receives every event, and few events
// twice. Meanwhile, the exporter sends few requests.
func TestExportReceiverDown(t *testing.T) {
	for kind := range targets {
		for name, fail := range map[string]func(w http.ResponseWriter){
			"slow 500": func(w http.ResponseWriter) {
				time.Sleep(25 * time.Second)
				w.WriteHeader(http.StatusInternalServerError)
			},
			"silent": func(http.ResponseWriter) { time.Sleep(45 * time.Second) },
			"503": func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "900")
				w.WriteHeader(http.StatusServiceUnavailable)
			},
			"wrong setup": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) },
			"moved": func(w http.ResponseWriter) {
				w.Header().Set("Location", "http://evil.example/")
				w.WriteHeader(http.StatusTemporaryRedirect)
			},
		} {
			if kind != Umami && (testing.Short() || !strings.Contains(days[kind], name)) {
				continue // same as Umami
			}
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m, n, log := new(memory), new(network), new(bytes.Buffer)
					visits(m, 40)
					up := time.Now().Add(24 * time.Hour)
					n.answer = func(w http.ResponseWriter, _ int, _ []string) {
						if time.Now().Before(up) {
							fail(w)
						}
					}
					e := exporting(t, n, kind, m, log)
					e.o.Every = 20 * time.Minute
					ended := make(chan struct{})
					ctx, cancel := context.WithCancel(t.Context())
					go func() { defer close(ended); e.Run(ctx) }()
					time.Sleep(23 * time.Hour)
					visits(m, 10)
					time.Sleep(50 * time.Minute)
					if l := e.Lag(t.Context()); l.Events != 50 || l.Failing == "" || l.Sent > 0 || time.Since(l.Since) < 23*time.Hour {
						t.Errorf("after a day: %+v", l)
					}
					n.mu.Lock()
					if n.requests > 400*maxRefused || n.most > 16 { // handlers of timed-out requests still run
						t.Errorf("%d requests in a day, %d at once", n.requests, n.most)
					}
					n.mu.Unlock()
					time.Sleep(30 * time.Minute)
					all, again := n.receivedEvents()
					if got, want := sorted(all), numbers(1, 50); !slices.Equal(got, want) {
						t.Errorf("exported %d events: %.200q", len(got), got)
					}
					// A receiver that does not answer may have stored the events.
					if again > 0 && name != "silent" {
						t.Errorf("%d events were exported twice", again)
					}
					if l := e.Lag(t.Context()); l.Events != 0 || !l.Since.IsZero() || l.Failing != "" || l.Sent != 50 || l.Lost+l.Refused > 0 {
						t.Errorf("after all: %+v", l)
					}
					cancel()
					<-ended
					if text := log.String(); strings.Contains(text, "hunter2") || strings.Count(text, "\n") > 40 || !strings.Contains(text, "level=INFO") {
						t.Errorf("%d lines of log:\n%.3000s", strings.Count(text, "\n"), text)
					}
					time.Sleep(time.Hour) // let the handlers end
				})
			})
		}
	}
}

// A restarted exporter continues at its stored position and repeats no event.
func TestExportAgain(t *testing.T) {
	for kind := range targets {
		synctest.Test(t, func(t *testing.T) {
			m, n := new(memory), new(network)
			for i := range 5 {
				visits(m, 150)
				run(t, exporting(t, n, kind, m, nil), time.Minute)
				all, again := n.receivedEvents()
				if want := numbers(1, 150*(i+1)); !slices.Equal(sorted(all), want) || again > 0 {
					t.Fatalf("%s: exported %d events, %d of them twice", kind, len(all), again)
				}
				if kind == Webhook && !slices.Equal(all, numbers(1, 150*(i+1))) {
					t.Errorf("in the wrong order: %q", all)
				}
			}
		})
	}
}

// New events are exported soon, including the first one. A store without events is not a
// failure.
func TestExportLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n, log := new(memory), new(network), new(bytes.Buffer)
		e := exporting(t, n, Webhook, m, log)
		e.o.Every = time.Minute
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { defer close(ended); e.Run(ctx) }()
		for i := range 10 {
			time.Sleep(time.Minute)
			visits(m, 1)
			time.Sleep(time.Minute + time.Second)
			if all, _ := n.receivedEvents(); len(all) != i+1 {
				t.Errorf("after visit %d: exported %q", i+1, all)
			}
		}
		cancel()
		<-ended
		if log.Len() > 0 {
			t.Errorf("logged %s", log)
		}
	})
}

// Events that a receiver refuses do not block later events, as long as it accepts some.
func TestExportRefused(t *testing.T) {
	for kind, status := range map[string]int{Umami: 400, Plausible: 422, Webhook: 413} {
		synctest.Test(t, func(t *testing.T) {
			m, n := new(memory), new(network)
			n.answer = func(w http.ResponseWriter, _ int, about []string) {
				if slices.Contains(about, "7") || slices.Contains(about, "120") {
					w.WriteHeader(status)
				}
			}
			visits(m, 300)
			e := exporting(t, n, kind, m, nil)
			run(t, e, time.Hour)
			all, again := n.receivedEvents()
			if l := e.Lag(t.Context()); len(all) != 298 || again > 0 || l.Refused != 2 || l.Events != 0 || l.Sent != 298 || l.Lost > 0 {
				t.Errorf("%s: exported %d events: %+v", kind, len(all), l)
			}
			if n.requests > 300+40 {
				t.Errorf("%s: %d requests", kind, n.requests)
			}
		})
	}
}

// A single event at which a receiver always fails is finally dropped.
func TestExportDropsFailingEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n := new(memory), new(network)
		n.answer = func(w http.ResponseWriter, _ int, about []string) {
			if slices.Contains(about, "3") {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}
		visits(m, 10)
		e := exporting(t, n, Umami, m, nil)
		e.o.Every = time.Minute
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { defer close(ended); e.Run(ctx) }()
		time.Sleep(time.Hour)
		if all, _ := n.receivedEvents(); len(all) != 9 || e.Lag(t.Context()).Refused > 0 {
			t.Errorf("exported %d events: %+v", len(all), e.Lag(t.Context()))
		}
		for range 20 { // the first new events
			visits(m, 1)
			time.Sleep(10 * time.Minute)
		}
		all, again := n.receivedEvents()
		if l := e.Lag(t.Context()); len(all) != 29 || again > 0 || l.Refused != 1 || l.Events != 0 || l.Failing != "" {
			t.Errorf("exported %d events: %+v", len(all), l)
		}
		cancel()
		<-ended
	})
}

// A webhook that responds with 410 gets no more requests.
func TestExportGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n, log := new(memory), new(network), new(bytes.Buffer)
		n.answer = func(w http.ResponseWriter, _ int, _ []string) { w.WriteHeader(http.StatusGone) }
		visits(m, 10)
		e := exporting(t, n, Webhook, m, log)
		run(t, e, 24*time.Hour)
		if l := e.Lag(t.Context()); n.requests != 1 || l.Events != 10 || !strings.Contains(l.Failing, "410") || !strings.Contains(log.String(), "410") {
			t.Errorf("%d requests: %+v\n%s", n.requests, l, log)
		}
	})
}

// Events that the store has deleted in the meantime are logged and counted as lost.
func TestExportLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n := new(memory), new(network)
		visits(m, 10)
		run(t, exporting(t, n, Webhook, m, nil), time.Minute)
		visits(m, 90)
		m.mu.Lock()
		m.events = append(m.events[:10:10], m.events[60:]...) // 11 to 60
		m.mu.Unlock()
		var log bytes.Buffer
		e := exporting(t, n, Webhook, m, &log)
		run(t, e, time.Minute)
		if !strings.Contains(log.String(), "events=50 event=100") {
			t.Errorf("logged %s", &log)
		}
		all, _ := n.receivedEvents()
		if l := e.Lag(t.Context()); l.Lost != 50 || l.Sent != 40 || l.Events != 0 || !slices.Equal(all, append(numbers(1, 10), numbers(61, 100)...)) {
			t.Errorf("%+v: exported %q", l, all)
		}
	})
}

// Any number of lost events is counted at once.
func TestExportLostMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n := new(memory), new(network)
		visits(m, 2)
		run(t, exporting(t, n, Webhook, m, nil), time.Minute)
		const last = 1 << 38
		visits(m, 1)
		m.mu.Lock()
		m.events[2].Number = last
		m.mu.Unlock()
		var log bytes.Buffer
		e := exporting(t, n, Webhook, m, &log)
		run(t, e, time.Minute)
		if want := fmt.Sprintf("events=%d event=%d", last-3, last); !strings.Contains(log.String(), want) {
			t.Errorf("logged %s", &log)
		}
		if l := e.Lag(t.Context()); l.Lost != last-3 || l.Sent != 1 || len(e.done) != 0 {
			t.Errorf("%+v, %d done", l, len(e.done))
		}
	})
}

// A new receiver gets the events of the last day once it is reachable. A receiver that uses
// the time of arrival gets only recent events.
func TestExportFirst(t *testing.T) {
	for kind := range targets {
		synctest.Test(t, func(t *testing.T) {
			m, n := new(memory), new(network)
			visits(m, 10)
			time.Sleep(48 * time.Hour)
			visits(m, 10)
			time.Sleep(time.Hour)
			e := exporting(t, n, kind, m, nil)
			run(t, e, time.Minute)
			if all, _ := n.receivedEvents(); !slices.Equal(sorted(all), numbers(11, 20)) || e.Lag(t.Context()).Lost > 0 {
				t.Errorf("%s: exported %q: %+v", kind, all, e.Lag(t.Context()))
			}
		})
		synctest.Test(t, func(t *testing.T) {
			m, n := new(memory), new(network)
			down := true
			n.answer = func(w http.ResponseWriter, _ int, _ []string) {
				if down {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}
			visits(m, 10)
			e := exporting(t, n, kind, m, nil)
			run(t, e, 70*time.Hour) // saves the position
			before := e.Lag(t.Context()).Lost
			visits(m, 10)
			time.Sleep(10 * time.Hour)
			down = false
			e = exporting(t, n, kind, m, nil)
			run(t, e, time.Hour)
			all, _ := n.receivedEvents()
			want, lost := numbers(1, 20), uint64(0)
			if kind == GA4 || kind == Plausible { // would date old events as new
				want, lost = numbers(11, 20), 10
			}
			if l := e.Lag(t.Context()); !slices.Equal(sorted(all), want) || before+l.Lost != lost || l.Events != 0 {
				t.Errorf("%s: exported %q: %+v", kind, all, l)
			}
		})
	}
}

// An exporter retries after a failure of the store.
func TestExportStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n, log := new(memory), new(network), new(bytes.Buffer)
		visits(m, 10)
		f := &fullDisk{memory: m, until: time.Now().Add(time.Hour)}
		e := exporting(t, n, Umami, f, log)
		run(t, e, 2*time.Hour)
		if all, _ := n.receivedEvents(); len(all) != 10 || !strings.Contains(log.String(), "disk") {
			t.Errorf("exported %q: %s", all, log)
		}
		if at := exported(t, m, e); at != 10 {
			t.Errorf("kept %d", at)
		}
	})
}

// fullDisk is a store that cannot save the position before a given time.
type fullDisk struct {
	*memory
	until time.Time
}

func (f *fullDisk) Swap(ctx context.Context, namespace, key string, old, new []byte) error {
	if time.Now().Before(f.until) {
		return errors.New("disk full")
	}
	return f.memory.Swap(ctx, namespace, key, old, new)
}
