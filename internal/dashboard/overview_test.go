package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/replica"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

// The overview names a bot that reads despite the policy only if it got content after the
// policy began, and no rule refuses it.
func TestOverviewDespitePolicy(t *testing.T) {
	t.Parallel()
	today := midnight(seedTime)
	fetch := func(day time.Time) store.Event {
		return store.Event{Time: day.Add(time.Hour), Bot: "GPTBot", Family: "openai", Protocol: "html", Endpoint: store.EndpointFetch, Status: 200, Bytes: 1000, HTML: 900, Received: 900, Results: 1}
	}
	refused := fetch(today)
	refused.Status = 403
	robots := fetch(today)
	robots.Endpoint, robots.Protocol = store.EndpointDiscovery, "site"
	table, err := bots.New(&bots.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		since  time.Time
		rules  []BotRule
		events []store.Event
		want   bool
	}{
		"before the policy":        {since: today.Add(-10 * time.Hour), events: []store.Event{fetch(today.AddDate(0, 0, -1)), refused}},
		"on the day of the policy": {since: today.Add(30 * time.Minute), events: []store.Event{fetch(today)}},
		"only robots.txt":          {since: today.AddDate(0, 0, -3), events: []store.Event{robots, refused}},
		"after the policy":         {since: today.AddDate(0, 0, -3), events: []store.Event{fetch(today)}, want: true},
		"a rule for the bot":       {since: today.AddDate(0, 0, -3), events: []store.Event{fetch(today)}, rules: []BotRule{{"GPTBot", "403"}}},
		"a rule for the purpose":   {since: today.AddDate(0, 0, -3), events: []store.Event{fetch(today)}, rules: []BotRule{{"training", "402"}}},
		"a rule for others":        {since: today.AddDate(0, 0, -3), events: []store.Event{fetch(today)}, rules: []BotRule{{"ClaudeBot", "403"}, {"GPTBot", "2/s"}}, want: true},
	} {
		v := counted(t, c.events)
		v.d.site.Policy = &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}, Updated: c.since}
		v.d.site.Access = &AccessSettings{Bots: table, BotRules: c.rules}
		v.logIn(boardPassword)
		body := v.ask(http.MethodGet, "/", nil).Body.String()
		// The notice links to the rules, as the list of visitors does.
		if got := strings.Contains(body, despitePolicy); got != c.want || (strings.Count(body, "/policy#bots") == 2) != c.want {
			t.Errorf("%s: named %t", name, got)
		}
	}
}

// The overview says which requests cause costs.
func TestOverviewCost(t *testing.T) {
	t.Parallel()
	g := &group{Saved: &analytics.Saved{Pages: 2, Bytes: savings.Figure{Instead: 2000, Saved: -500}}}
	const want = "A conditional request for an unchanged page saves about 1.0 kB. After 1 such request, the savings exceed the cost."
	if got := answerOf(g); !strings.HasSuffix(got, want) {
		t.Errorf("got %q", got)
	}
}

// The overview lists the replicas, if there are several.
func TestOverviewReplicas(t *testing.T) {
	t.Parallel()
	v := counted(t, nil)
	v.logIn(boardPassword)
	all := []replica.Process{{Name: "one/1/A", Version: "v9.1", Seen: seedTime, Builder: true}, {Name: "two/1/B", Version: "v9.2", Seen: seedTime}}
	for n := range len(all) + 1 {
		v.d.site.Replicas = func(context.Context) ([]replica.Process, error) { return all[:n], nil }
		body := v.ask(http.MethodGet, "/", nil).Body.String()
		for _, text := range []string{"one/1/A", "two/1/B", "v9.1", "v9.2"} {
			if strings.Contains(body, text) != (n > 1) {
				t.Errorf("%d replicas: %s is missing, or should not be shown", n, text)
			}
		}
	}
}

// A client may not accept compression.
func TestOverviewClaims(t *testing.T) {
	t.Parallel()
	v := counted(t, nil)
	v.logIn(boardPassword)
	body := v.ask(http.MethodGet, "/", nil).Body.String()
	if strings.Contains(body, ">compressed<") {
		t.Error("the overview says that all traffic is compressed")
	}
}
