package dashboard

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// counted returns a client of a dashboard over a new store with the given events.
func counted(t *testing.T, events []store.Event) *guest {
	t.Helper()
	const base = "https://example.com/"
	s := memory.New(nil)
	site, err := s.Site(t.Context(), "s", base)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), "s", events); err != nil {
		t.Fatal(err)
	}
	d, err := New(&SiteOptions{Name: "s", Base: base, EndpointBase: base, Pages: site, Usage: s, Protocols: all.Protocols()}, &Options{
		Path: boardPath, Password: cheap(), Sessions: newSessions(), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return seedTime },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &guest{t, d, "https://example.com", "192.0.2.7:0", map[string]string{}, http.Header{}}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	today := midnight(seedTime)
	at := func(days, hour int) time.Time { return today.AddDate(0, 0, -days).Add(time.Duration(hour) * time.Hour) }
	v := counted(t, []store.Event{
		{Time: at(0, 3), Bot: "GPTBot", Family: "openai", Identity: store.Verified, Protocol: "tct-01", Endpoint: store.EndpointFetch, Status: 200, Bytes: 1000, Size: 4000, HTML: 50_000, Received: 10_000, Results: 1, Took: time.Millisecond},
		{Time: at(0, 3), Bot: "GPTBot", Family: "openai", Identity: store.Verified, Protocol: "tct-01", Endpoint: store.EndpointFetch, Status: 304, Cached: true, HTML: 50_000, Received: 10_000, Results: 1, Took: time.Millisecond},
		{Time: at(0, 5), Bot: "GPTBot", Family: "openai", Protocol: "html", Endpoint: store.EndpointFetch, Status: 404, Bytes: 50},
		{Time: at(1, 5), Bot: "CCBot", Identity: store.Forged, Protocol: "html", Endpoint: store.EndpointFetch, Status: 403, Bytes: 20},
		{Time: at(3, 5), Bot: "CCBot", Protocol: "html", Endpoint: store.EndpointFetch, Status: 502, Bytes: 7},
		{Time: at(9, 5), Bot: "CCBot", Protocol: "scp", Endpoint: store.EndpointIndex, Status: 200, Bytes: 900, Results: 3},
	})
	ask := func(q question) *figures {
		t.Helper()
		if q.To.IsZero() {
			q.To = today.AddDate(0, 0, 1)
		}
		f, err := v.d.count(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := ask(question{From: at(9, 0), Since: at(6, 0), Per: store.Day})
	if g := f.Total; g.Events != 5 || g.Unmodified != 1 || g.Missing != 1 || g.Refused != 1 || g.Failed != 1 || g.Verified != 2 || g.Forged != 1 || g.Bytes != 1077 || g.Answered() != 2 {
		t.Errorf("%+v", g)
	}
	if s := f.Total.Saved; s.Bytes.Saved != 19_000 || s.Bytes.Instead != 20_077 {
		t.Errorf("saved %+v", s.Bytes)
	}
	if len(f.Bots) != 2 || f.Bots[0].Name != "GPTBot" || f.Bots[0].Family != "openai" || f.Bots[0].Saved == nil || f.Bots[0].Mean() != 2*time.Millisecond/3 {
		t.Errorf("%+v", f.Bots[0])
	}
	c := f.chart("x", "count", f.series(), 1, v.d.label)
	var rows [][]float64
	for _, r := range c.Rows {
		rows = append(rows, r.Values)
	}
	if d := cmp.Diff([][]float64{{0, 0, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {0, 0, 0}, {1, 0, 0}, {1, 2, 0}}, rows); d != "" || strings.Join(c.Series, ",") != "HTML,TCT 01,SCP" {
		t.Errorf("%v (-want +got):\n%s", c.Series, d)
	}
	c = f.chart("x", "count", f.series(), 7, v.d.label)
	if len(c.Rows) != 2 || c.Rows[1].Total() != 4 {
		t.Errorf("weeks: %+v", c.Rows)
	}
	f = ask(question{From: at(12, 0), Per: store.Day, Bot: "GPTBot"})
	if c = f.chart("x", "count", f.series(), 1, v.d.label); len(c.Rows) != 1 || c.Rows[0].Total() != 3 {
		t.Errorf("one day: %+v", c.Rows)
	}
	f = ask(question{From: at(0, 0), Per: store.Hour, By: "outcome", Measure: "bytes", Bot: "GPTBot"})
	c = f.chart("x", "bytes", f.Ends, 1, v.d.label)
	if len(c.Rows) != 24 || c.Rows[3].Total() != 1000 || c.Rows[5].Total() != 50 || f.Total.Events != 3 || f.Savings != nil {
		t.Errorf("hours: %+v", c.Rows)
	}
	if f := ask(question{From: at(9, 0), Per: store.Day, Protocol: "scp"}); f.Total.Events != 1 || len(f.Bots) != 1 {
		t.Errorf("the figures of one protocol: %+v", f.Total)
	}
}

// The overview of a site without visits says so, and shows no percentages.
func TestOverviewWithoutVisits(t *testing.T) {
	t.Parallel()
	v := counted(t, nil)
	v.logIn(boardPassword)
	if body := v.ask(http.MethodGet, "/", nil).Body.String(); !strings.Contains(body, emptyList) || strings.Contains(body, "– of requests") {
		t.Error(body)
	}
}

// Names and paths from clients are shown as text, whatever they contain.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	const evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e\x1b[31m"
	v := counted(t, []store.Event{{Time: seedTime, Bot: evil, Family: evil, Protocol: evil, Endpoint: store.Endpoint(evil), Identity: store.Verified, Status: 200, Bytes: 5, Path: evil, Query: evil}})
	v.logIn(boardPassword)
	for _, path := range []string{"/", "/traffic?by=bot", "/traffic?by=endpoint", "/traffic?by=protocol&range=24h", "/traffic?" + url.Values{"bot": {evil}, "protocol": {evil}, "by": {evil}, "range": {evil}}.Encode(), "/traffic?from=" + url.QueryEscape(evil), "/traffic?from=2026-01-02&to=2026-01-01", "/traffic?from=0001-01-01"} {
		w := v.ask(http.MethodGet, path, nil)
		body := w.Body.String()
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest || strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") || strings.ContainsAny(body, "\u202e\x1b") {
			t.Errorf("%s: %d\n%s", path, w.Code, body)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{count(0), "0"},
		{count(999), "999"},
		{count(1000), "1,000"},
		{count(-1234567), "−1,234,567"},
		{count(uint64(1) << 63), "9,223,372,036,854,775,807"},
		{size(0), "0 B"},
		{size(999), "999 B"},
		{size(1000), "1.0 kB"},
		{size(9_960), "10 kB"},
		{size(999_600), "1.0 MB"},
		{size(-2_500_000), "−2.5 MB"},
		{size(int64(3e18)), "3000 PB"},
		{percent(0, 0), "–"},
		{percent(0, 7), "0.0 %"},
		{percent(1, 100_000), "<0.1 %"},
		{percent(1, 3), "33 %"},
		{percent(9_999, 10_000), ">99 %"},
		{percent(5, 5), "100 %"},
		{share(1, 0), "0"},
		{share(1, 1_000_000), "0.5"},
		{share(9, 3), "100.0"},
		{share(1, 2), "50.0"},
		{short(12), "12"},
		{short(12_345), "12.3 k"},
		{short(3.4e7), "34.0 M"},
		{short(-2e9), "−2.0 G"},
		{energyOf(0), "0 Wh"},
		{energyOf(-.00001), "about 0 Wh"},
		{energyOf(.0123), "12.3 Wh"},
		{energyOf(-2), "−2.0 kWh"},
		{took(1500 * time.Nanosecond), "1 µs"},
		{took(1500 * time.Microsecond), "1.5 ms"},
		{took(90 * time.Minute), "90 min"},
		{took(72 * time.Hour), "3 days"},
		{against(5, 0), "none the week before"},
		{against(5, 5), "same as the week before"},
		{against(15, 10), "+50 % on the week before"},
		{against(5, 10), "−50 % on the week before"},
		{against(100, 3), "33 times the week before"},
		{string(ago(seedTime, seedTime.Add(-time.Hour))), `<time datetime="2026-11-20T14:30:00Z" title="Fri 20 Nov 2026 14:30:00 UTC">60 min ago</time>`},
		{cut(3, "Wehre"), "Weh…"},
		{cut(5, "Wehre"), "Wehre"},
		{readable(99, "/%D8%B7%D8%A7/%E6%B0%B4-%c3%a9%20%2F%3Cb%3E%80%E2%80%AE%41.html?q=%"), "/طا/水-é%20%2F%3Cb%3E%80%E2%80%AE%41.html?q=%"},
		{readable(3, "/%E6%B0%B4%E6%B0%B4%E6%B0%B4"), "/水水…"},
		{printable("a\x00b\u202ec\nd\xff"), "a\ufffdb\ufffdc d\ufffd"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
