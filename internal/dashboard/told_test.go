package dashboard

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/analytics"
)

// Who is told of requests is shown with what has become of it.
func TestTold(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	told := []analytics.Lag{
		{Exporter: "umami https://stats.example.com", Sent: 12345},
		{Exporter: "webhook https://hooks.example", Events: 678, Since: seedTime.Add(-25 * time.Hour), Failing: "webhook https://hooks.example: 500 <b>Internal</b>\x1b Server Error", Refused: 3, Lost: 4},
	}
	h.Told = func() []analytics.Lag { return told }
	v := owner(t, h.Site)
	body := v.ask(http.MethodGet, "/errors", nil).Body.String()
	for _, want := range []string{"Who is told of requests", "umami https://stats.example.com", "12,345", "678", "500 &lt;b&gt;Internal", "the oldest that waits"} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if strings.Contains(body, "\x1b") || strings.Count(body, "the oldest that waits") != 1 {
		t.Error(body)
	}
	told = nil
	if body := v.ask(http.MethodGet, "/errors", nil).Body.String(); strings.Contains(body, "Who is told") {
		t.Error("nobody is told, and it is shown")
	}
}
