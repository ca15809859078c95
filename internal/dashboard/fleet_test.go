package dashboard

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/sitelist"
)

// mirrored returns a fleet with failing hosts.
func mirrored(now time.Time) *sitelist.Summary {
	return &sitelist.Summary{
		Fleet: sitelist.Fleet{
			Time:  time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC),
			Sites: 104_321, Hosts: 99_870, Groups: 61_004, Paused: 12, New: 340, Failing: 1290, Due: 87, Leased: 64, Lag90: 0.4, Lag99: 75, LagMax: 4000,
			Errors: map[string]int{"dns-not-found": 900, "http-503": 250, "<b>x": 140}, Requests: 2_345_678, Received: 61_234_567_890,
		},
		Worst: []sitelist.Host{
			{Host: "gone.example", Sites: 1, Failures: 15, Error: "dns-not-found", Until: now.Add(20 * time.Hour), Requests: 44},
			{Host: "a-rather-long-name-of-a-host.with-many-labels.example", Address: "2001:db8:1234:5678::/64", Sites: 1200, Failures: 3, Error: "timeout-response<i>\x1b", Until: now.Add(8 * time.Minute), Requests: 91_000, Received: 1 << 33},
		},
	}
}

// The page of the mirrored sites shows their lag, errors and bytes, and the worst hosts. Without
// such sites, there is no page.
func TestFleet(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	if w := owner(t, h.SiteOptions).ask(http.MethodGet, "/fleet", nil); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), `href="/dashboard/fleet"`) {
		t.Errorf("without sites: %d %s", w.Code, w.Body)
	}
	summary := mirrored(time.Now())
	h.Fleet = func(context.Context) (*sitelist.Summary, error) { return summary, nil }
	v := owner(t, h.SiteOptions)
	body := v.ask(http.MethodGet, "/fleet", nil).Body.String()
	for _, want := range []string{"2025-03-04 05:06", "104,321", "1m15s", "1h6m40s", "1,290", "61 GB", "587 kB", "2,345,678", "900", "&lt;b&gt;x", "gone.example", "2001:db8:1234:5678::/64", "timeout-response&lt;i&gt;", "1,200"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(body, "\x1b") || !strings.Contains(v.ask(http.MethodGet, "/", nil).Body.String(), `href="/dashboard/fleet"`) {
		t.Error(body)
	}
	summary = nil
	if w := v.ask(http.MethodGet, "/fleet", nil); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), emptyList) {
		t.Errorf("all removed: %d %s", w.Code, w.Body)
	}
}

// The page of the mirrored sites is complete and readable on a phone and on a desktop.
func TestRealBrowserFleet(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	now := time.Now()
	h.Fleet = func(context.Context) (*sitelist.Summary, error) { return mirrored(now), nil }
	b := newBoard(t, h.SiteOptions, now)
	open := chromium(t)
	for _, view := range []struct {
		name, theme string
		width       int64
	}{{"wide-light", "light", 1280}, {"wide-dark", "dark", 1280}, {"narrow-light", "light", 390}} {
		w := open(t, view.width, view.theme)
		w.logIn(b)
		w.open(strings.TrimSuffix(b.url, "/") + "/fleet")
		w.shoot("fleet-" + view.name)
		for _, f := range w.flaws() {
			t.Errorf("%s: %s", view.name, f)
		}
	}
}
