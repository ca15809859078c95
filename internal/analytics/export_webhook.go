package analytics

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/store"
)

// hooked posts events to somebody's server, signed, many in one message.
type hooked struct {
	hook *webhook.Sender
	site string
}

// hookMessage is one message. The same events are the same message.
type hookMessage struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the last event
	Data      struct {
		Site   string      `json:"site"`
		Events []hookEvent `json:"events"`
	} `json:"data"`
}

// hookEvent is one event, by the names of OpenFeeder 1.0, section 12, where it has
// one.
type hookEvent struct {
	Number   uint64    `json:"number"` // of the site's events; who has it already has had the event
	Time     time.Time `json:"time"`
	Bot      string    `json:"bot_name"`
	Family   string    `json:"bot_family,omitempty"`
	Verdict  string    `json:"verdict,omitempty"`
	Protocol string    `json:"protocol"`
	Endpoint string    `json:"endpoint"`
	Path     string    `json:"path"`
	Query    string    `json:"query,omitempty"`
	Intent   string    `json:"intent,omitempty"`
	Results  int64     `json:"results"`
	Status   int       `json:"status"` // 0 = the answer broke off
	Outcome  string    `json:"outcome"`
	Cached   bool      `json:"cached"`
	Bytes    int64     `json:"bytes"`
	Size     int64     `json:"size,omitempty"`
	HTML     int64     `json:"html,omitempty"`
	Received int64     `json:"html_received,omitempty"`
	Response float64   `json:"response_ms"`
}

func (h *hooked) group(events []store.Event) [][]store.Event {
	var out [][]store.Event
	for most := receivers[Webhook].together; len(events) > 0; {
		n := min(most, len(events))
		out, events = append(out, events[:n:n]), events[n:]
	}
	return out
}

func (h *hooked) post(ctx context.Context, group []store.Event) (string, error) {
	m := hookMessage{Type: "site.requested", Timestamp: group[len(group)-1].Time.UTC()}
	m.Data.Site = h.site
	for i := range group {
		e := &group[i]
		m.Data.Events = append(m.Data.Events, hookEvent{
			Number: e.Number, Time: e.Time.UTC(), Bot: e.Bot, Family: e.Family, Verdict: string(e.Identity), Protocol: e.Protocol,
			Endpoint: string(e.Endpoint), Path: e.Path, Query: e.Query, Intent: e.Intent, Results: e.Results, Status: e.Status,
			Outcome: string(store.OutcomeOf(e.Status)), Cached: e.Cached, Bytes: e.Bytes, Size: e.Size, HTML: e.HTML,
			Received: e.Received, Response: float64(e.Took.Microseconds()) / 1000,
		})
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return "", err
	}
	return "", h.hook.Try(ctx, body)
}
