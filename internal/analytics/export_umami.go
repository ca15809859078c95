package analytics

import (
	"context"
	"encoding/json"

	"github.com/millrace/millrace/store"
)

// umami posts to Umami's /api/send, one event in a request.
// https://umami.is/docs/api/sending-stats
type umami struct{ provider }

// Most characters that Umami keeps.
const (
	umamiURL  = 500
	umamiID   = 50
	umamiHost = 100
)

type umamiMessage struct {
	Type    string       `json:"type"`
	Payload umamiPayload `json:"payload"`
}

type umamiPayload struct {
	Website   string     `json:"website"`
	Hostname  string     `json:"hostname"`
	URL       string     `json:"url"`
	Name      string     `json:"name"`         // with one, it is no view of a page by a person
	ID        string     `json:"id,omitempty"` // of the session: a bot is one visitor
	Timestamp int64      `json:"timestamp"`    // in seconds
	Data      eventProps `json:"data"`
}

// eventProps is what an event says, for receivers that keep what they are given,
// by the names of OpenFeeder 1.0, section 12, where it has one.
type eventProps struct {
	Bot      string `json:"bot_name"`
	Family   string `json:"bot_family,omitempty"`
	Verdict  string `json:"verdict,omitempty"`
	Protocol string `json:"protocol"`
	Endpoint string `json:"endpoint"`
	Query    string `json:"query,omitempty"`
	Intent   string `json:"intent,omitempty"`
	Results  int64  `json:"results"`
	Status   int    `json:"status"`
	Outcome  string `json:"outcome"`
	Cached   bool   `json:"cached"`
	Bytes    int64  `json:"bytes"`
	Size     int64  `json:"size"`
	HTML     int64  `json:"html"`
	Response int64  `json:"response_ms"`
}

func propsOf(e *store.Event) eventProps {
	return eventProps{
		Bot: e.Bot, Family: e.Family, Verdict: string(e.Identity), Protocol: e.Protocol, Endpoint: string(e.Endpoint),
		Query: e.Query, Intent: e.Intent, Results: e.Results, Status: e.Status, Outcome: string(store.OutcomeOf(e.Status)),
		Cached: e.Cached, Bytes: e.Bytes, Size: e.Size, HTML: e.HTML, Response: milliseconds(e),
	}
}

func (u *umami) group(events []store.Event) [][]store.Event { return apart(events) }

func (u *umami) post(ctx context.Context, group []store.Event) (string, error) {
	e := &group[0]
	page := u.page(e, umamiURL)
	m := umamiMessage{Type: "event", Payload: umamiPayload{
		Website: u.target.say.Get("website"), Hostname: leading(page.Hostname(), umamiHost), URL: page.String(),
		Name: eventName(e), ID: leading(e.Bot, umamiID), Timestamp: max(0, past(e.Time, u.now()).Unix()), Data: propsOf(e),
	}}
	_, answer, err := u.send(ctx, &m)
	if err != nil {
		return "", err
	}
	var said struct {
		Beep string `json:"beep"`
	}
	if json.Unmarshal(answer, &said) == nil && said.Beep != "" {
		return "Umami takes the name of this program for a bot's: set another one with --user-agent, or DISABLE_BOT_CHECK=1 there", nil
	}
	return "", nil
}
