package discover_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// With a previous report, a probe checks whether its ways still exist, and probes for the protocols
// that were absent or have disappeared.
func TestProbePrevious(t *testing.T) {
	protocols := all.Protocols()
	s := publish(t, 40, protocol.PublisherOptions{}, protocols...)
	o := discover.Options{Protocols: protocols}
	first := probe(t, s.URL, &o)
	asked, spent := s.requests(), first.Spent.Bytes
	o.Previous = first
	second := probe(t, s.URL, &o)
	if n := s.requests() - asked; n > 12 || second.Spent.Bytes*4 > spent {
		t.Errorf("%d requests and %d bytes; %d bytes the first time", n, second.Spent.Bytes, spent)
	}
	if d := cmp.Diff(first.Ways, second.Ways); d != "" || second.Measured != first.Measured || second.Page != first.Page {
		t.Errorf("measured %s, then %s (-first +second):\n%s", first.Measured, second.Measured, d)
	}
	// The report of another site is ignored.
	other := *first
	other.URL = "https://elsewhere.example/"
	o.Previous = &other
	if got := probe(t, s.URL, &o); got.Measured != got.Time {
		t.Errorf("measured %s, looked %s", got.Measured, got.Time)
	}

	entry := first.Way("scp").Offer.Entry
	s.mu.Lock()
	s.handlers = append([]http.Handler{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.URL+r.URL.Path == entry {
			w.WriteHeader(http.StatusGone)
			return
		}
		http.NotFound(w, r)
	})}, s.handlers...)
	s.mu.Unlock()
	o.Previous = first
	if got := probe(t, s.URL, &o); got.Way("scp") != nil && got.Way("scp").Offer != nil || got.Way("arc") == nil {
		t.Errorf("after scp disappeared: %+v", got.Ways)
	}
}

// If the server sends a list as changes, each refresh costs less.
func TestProbeSendsChanges(t *testing.T) {
	s := publish(t, 400, protocol.PublisherOptions{}, all.Protocols()...)
	before := probe(t, s.URL, nil)
	next := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/llm-pages.json" && strings.Contains(r.Header.Get("Accept-Encoding"), "dcz") {
			w.Header().Set("Use-As-Dictionary", `match="/llm-pages.json"`)
		}
		next.ServeHTTP(w, r)
	})
	var after *discover.SiteReport
	for range 2 {
		after = probe(t, s.URL, &discover.Options{Previous: after})
		for i, w := range after.Ways {
			if w.SendsChanges != (w.Protocol == "tct-01") || before.Ways[i].SendsChanges {
				t.Errorf("%s: %v", w.Protocol, w.SendsChanges)
			}
			if was, is := before.Plan(nil).Quotes[i].Refresh.Bytes, after.Plan(nil).Quotes[i].Refresh.Bytes; w.SendsChanges && is > was/2 {
				t.Errorf("a refresh costs %d bytes; %d without changes", is, was)
			}
		}
	}
}
