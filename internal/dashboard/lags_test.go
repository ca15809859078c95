package dashboard

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/analytics"
)

// The receivers of events are shown with their state and counts.
func TestLags(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	h.Usage = h.store
	lags := []analytics.Lag{
		{Exporter: "umami https://stats.example.com", Sent: 12345},
		{Exporter: "webhook https://hooks.example", Events: 678, Since: seedTime.Add(-25 * time.Hour), Failing: "webhook https://hooks.example: 500 <b>Internal</b>\x1b Server Error", Refused: 3, Lost: 4},
	}
	h.Lags = func(context.Context) []analytics.Lag { return lags }
	v := owner(t, h.SiteOptions)
	body := v.ask(http.MethodGet, "/errors", nil).Body.String()
	for _, want := range []string{"umami https://stats.example.com", "12,345", "678", "500 &lt;b&gt;Internal", `id="lags"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(body, "\x1b") || strings.Count(body, `id="lags"`) != 1 {
		t.Error(body)
	}
	lags = nil
	if body := v.ask(http.MethodGet, "/errors", nil).Body.String(); strings.Contains(body, `id="lags"`) {
		t.Error("no receivers, but the section is shown")
	}
}

// The receivers of events are complete and readable on a phone and on a desktop.
func TestRealBrowserLags(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	now := time.Now()
	h.Usage = h.store
	h.Lags = func(context.Context) []analytics.Lag {
		return []analytics.Lag{
			{Exporter: "umami https://stats.example.com", Sent: 1_234_567, Ignored: 12},
			{Exporter: "plausible https://plausible.a-rather-long-name-of-a-host.example.com:8443", Sent: 98_765},
			{Exporter: "webhook https://hooks.example", Events: 678_901, Since: now.Add(-25 * time.Hour), Failing: "webhook https://hooks.example: hooks.example is paused after 15 failures in a row; next request in 4m30s", Refused: 3, Lost: 4},
		}
	}
	b := newBoard(t, h.SiteOptions, now)
	open := chromium(t)
	for _, view := range []struct {
		name, theme string
		width       int64
	}{{"wide-dark", "dark", 1280}, {"narrow-light", "light", 390}} {
		w := open(t, view.width, view.theme)
		w.logIn(b)
		w.open(strings.TrimSuffix(b.url, "/") + "/errors#lags")
		w.shoot("told-" + view.name)
		for _, f := range w.flaws() {
			t.Errorf("%s: %s", view.name, f)
		}
	}
}
