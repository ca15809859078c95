package analytics

import (
	"context"
	"encoding/json"

	"github.com/millrace/millrace/store"
)

// Maximum lengths that Umami stores, in characters.
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
	Website   string         `json:"website"`
	Hostname  string         `json:"hostname"`
	URL       string         `json:"url"`
	Name      string         `json:"name"`         // an event with a name is not a page view
	ID        string         `json:"id,omitempty"` // ID of the session: one visitor per bot
	Timestamp int64          `json:"timestamp"`    // Unix seconds
	Data      map[string]any `json:"data"`
}

// umami posts to Umami's /api/send, one event per request.
// https://umami.is/docs/api/sending-stats
func (p *provider) umami(ctx context.Context, group []store.Event) (string, error) {
	e := &group[0]
	page := p.page(e, umamiURL)
	m := umamiMessage{Type: "event", Payload: umamiPayload{
		Website: p.target.say.Get("website"), Hostname: leading(page.Hostname(), umamiHost), URL: page.String(),
		Name: eventName(e), ID: leading(e.Bot, umamiID), Timestamp: max(0, past(e.Time, p.now()).Unix()), Data: properties(e),
	}}
	_, answer, err := p.send(ctx, &m)
	if err != nil {
		return "", err
	}
	var result struct {
		Beep string `json:"beep"`
	}
	if json.Unmarshal(answer, &result) == nil && result.Beep != "" {
		return "Umami mistakes the user agent of this program for a bot's; set another one with --user-agent, or set DISABLE_BOT_CHECK=1 in Umami", nil
	}
	return "", nil
}
