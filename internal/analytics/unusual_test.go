package analytics

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// unusual finds patterns in events, and fails the test if a finding lacks a field.
func unusual(t *testing.T, pages int64, all ...answers) []Unusual {
	t.Helper()
	m := &memory{}
	for _, a := range all {
		for i := range a.n {
			e := a.e
			if e.Time.IsZero() {
				e.Time = noon
			}
			e.Time = e.Time.Add(time.Duration(i) * time.Second)
			if e.Bot == "" {
				e.Bot, e.Family = "GPTBot", "openai"
			}
			e.Path = strings.ReplaceAll(e.Path, "*", fmt.Sprint(i))
			if isFullPage(&e) {
				e.Results = 1
			}
			if err := m.Record(t.Context(), "site", []store.Event{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := FindUnusual(t.Context(), m, "site", noon.Add(-6*time.Hour), pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range got {
		if u.Summary == "" || u.Advice == "" || u.From.IsZero() || !u.To.After(u.From) || u.Requests == 0 || u.Bot != nameless && !strings.Contains(u.Summary, u.Bot) || strings.Contains(u.Summary+u.Flag, nameless) {
			t.Errorf("%+v", u)
		}
	}
	return got
}

func TestUnusual(t *testing.T) {
	own := fetched(200, 1_000, 40_000, 10_000)
	each := own
	each.Path = "/page/*"
	notModified := own
	notModified.Status, notModified.Bytes, notModified.Size = 304, 0, 0
	changed := own
	changed.Size++
	forged := each
	forged.Identity = store.Forged
	refused := forged
	refused.Status, refused.Bytes = 403, 0
	gone := fetched(404, 100, 0, 0)
	gone.Path = "/wp-admin/*.php"
	list := index("tct-01", 200, 5_000, 100)
	on := func(day int, e store.Event) store.Event {
		e.Time = noon.AddDate(0, 0, day)
		return e
	}
	for _, tt := range []struct {
		name    string
		pages   int64
		answers []answers
		want    []string // pattern, requests, reference, bytes
	}{
		{"nothing", 0, nil, nil},
		{"a usual day", 1000, []answers{{9, own}, {99, each}, {9, gone}, {5, list}}, nil},
		{"the same page", 1000, []answers{{25, own}}, []string{"refetches 24 1 24000"}},
		{"the same page and the same list", 1000, []answers{{25, own}, {10, list}}, []string{"refetches 33 2 69000"}},
		{"an unchanged page", 1000, []answers{{25, own}, {1, notModified}}, nil},
		{"a page that changes", 1000, []answers{{25, own}, {1, changed}}, nil},
		{"half of the site", 1000, []answers{{500, each}}, []string{"burst 500 1000 500000"}},
		{"half of the site in four hours", 1000, []answers{{200, each}, {200, each}, {90, each}}, nil},
		{"a small site", 10, []answers{{9, each}}, nil},
		{"forged", 10_000, []answers{{30, forged}, {12, refused}}, []string{"forged 42 12 30000"}},
		{"forged and refused", 10_000, []answers{{12, refused}}, []string{"forged 12 12 0"}},
		{"guesses", 10_000, []answers{{60, gone}, {200, each}}, []string{"missing-pages 60 260 6000"}},
		{"a few dead links", 10_000, []answers{{60, gone}, {300, each}}, nil},
		{"ten times", 10_000, []answers{
			{50, on(-20, each)}, {60, on(-19, each)}, {70, on(-3, each)}, {600, each},
		}, []string{"surge 600 60 600000"}},
		{"nine times", 10_000, []answers{{60, on(-20, each)}, {70, on(-19, each)}, {71, on(-3, each)}, {600, each}}, nil},
		{"somebody new", 10_000, []answers{{600, each}}, nil},
		{"ten times of very few requests", 10_000, []answers{{1, on(-20, each)}, {1, on(-19, each)}, {1, on(-3, each)}, {499, each}}, nil},
	} {
		if tt.name == "half of the site in four hours" {
			for i := range tt.answers {
				tt.answers[i].e.Time = noon.Add(time.Duration(i) * time.Hour)
			}
		}
		var got []string
		for _, u := range unusual(t, tt.pages, tt.answers...) {
			got = append(got, fmt.Sprint(u.Pattern, " ", u.Requests, " ", u.Reference, " ", u.Bytes))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Each bot and protocol is examined separately, and the worst findings come first.
func TestUnusualOfMany(t *testing.T) {
	a, b := fetched(200, 1_000, 0, 0), fetched(200, 1_000, 0, 0)
	b.Bot, b.Protocol, b.Path = "ClaudeBot", "html", "/b"
	c := a
	c.Bot, c.Family = nameless, ""
	got := unusual(t, 1000, answers{11, a}, answers{40, b}, answers{10, c}, answers{12, store.Event{Bot: "CCBot", Protocol: "html", Endpoint: store.EndpointFile, Path: "/a.png", Status: 200, Bytes: 10}})
	if len(got) != 3 || got[2].Flag != "--bot bots=1/s" || got[0].Bot != "ClaudeBot" || got[0].Protocol != "html" || got[0].Path != "/b" || got[1].Bot != "GPTBot" || got[1].Family != "openai" {
		t.Errorf("%+v", got)
	}
	if !got[0].From.Equal(noon) || !got[0].To.Equal(noon.Add(39*time.Second)) || got[0].Flag != "--bot ClaudeBot=1/s" {
		t.Errorf("%+v", got[0])
	}
}

// 600 requests for one page are not reported as 600 pages.
func TestUnusualOfOnePage(t *testing.T) {
	var messages []string
	for _, u := range unusual(t, 1000, answers{600, fetched(200, 1_000, 0, 0)}) {
		if u.Pattern == Burst {
			messages = append(messages, u.Summary)
		}
	}
	if len(messages) != 1 || !strings.Contains(messages[0], "600") || strings.Contains(messages[0], "600 pages") {
		t.Errorf("%q", messages)
	}
}

// The number of examined paths is bounded, however many paths a client requests.
func TestUnusualBounded(t *testing.T) {
	events := func(yield func(store.Event, error) bool) {
		e := page("")
		for i := range maxPaths + 1000 {
			if e.Path = fmt.Sprint("/", i); !yield(e, nil) {
				return
			}
		}
		e.Path = "/0"
		for range 20 {
			e.Time = e.Time.Add(time.Second)
			yield(e, nil)
		}
	}
	got, err := refetches(events)
	if err != nil || len(got) != 1 || got[0].Path != "/0" || got[0].Requests != 20 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestUnusualFails(t *testing.T) {
	for _, u := range []store.Usage{&broken{}, &brokenEvents{}} {
		if _, err := FindUnusual(t.Context(), u, "site", noon, 1); !errors.Is(err, millrace.ErrUnavailable) {
			t.Error(err)
		}
	}
}

type brokenEvents struct{ memory }

func (*brokenEvents) Events(context.Context, string, store.EventQuery) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) { yield(store.Event{}, millrace.ErrUnavailable) }
}
