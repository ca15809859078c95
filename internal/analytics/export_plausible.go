package analytics

import (
	"context"
	"strconv"
	"time"

	"github.com/millrace/millrace/store"
)

// plausible posts to Plausible's /api/event, one event in a request. It cannot be
// told when something has happened: an event is of the moment when it comes.
// https://plausible.io/docs/events-api
type plausible struct{ provider }

const plausibleURL = 2000 // most bytes

type plausibleMessage struct {
	Name        string            `json:"name"`
	Domain      string            `json:"domain"`
	URL         string            `json:"url"`
	Interactive bool              `json:"interactive"` // false: nobody has come, or stays for it
	Props       map[string]string `json:"props"`
}

func (p *plausible) group(events []store.Event) [][]store.Event { return apart(events) }

func (p *plausible) post(ctx context.Context, group []store.Event) (string, error) {
	e := &group[0]
	m := plausibleMessage{
		Name: eventName(e), Domain: p.target.say.Get("domain"), URL: p.page(e, plausibleURL).String(),
		// The names are those of OpenFeeder 1.0, section 12, where it has one.
		Props: map[string]string{
			"bot_name": e.Bot, "protocol": e.Protocol, "endpoint": string(e.Endpoint), "status": strconv.Itoa(e.Status),
			"outcome": string(store.OutcomeOf(e.Status)), "cached": strconv.FormatBool(e.Cached), "date": e.Time.UTC().Format(time.DateOnly),
			"results": strconv.FormatInt(e.Results, 10), "response_ms": strconv.FormatInt(milliseconds(e), 10),
		},
	}
	for key, value := range map[string]string{"bot_family": e.Family, "verdict": string(e.Identity), "query": e.Query, "intent": e.Intent} {
		if value != "" {
			m.Props[key] = value
		}
	}
	h, _, err := p.send(ctx, &m)
	if err != nil {
		return "", err
	}
	if n := h.Get("X-Plausible-Dropped"); n != "" && n != "0" {
		return "Plausible drops them: it does not know the domain, or takes this machine's address or the name of this program for a bot's", nil
	}
	return "", nil
}
