package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/store"
)

const plausibleURL = 2000 // maximum size of a URL in bytes

type plausibleMessage struct {
	Name        string            `json:"name"`
	Domain      string            `json:"domain"`
	URL         string            `json:"url"`
	Interactive bool              `json:"interactive"` // always false: the event is not a visit of a person
	Props       map[string]string `json:"props"`
}

// plausible posts to Plausible's /api/event, one event per request. Plausible uses
// the time of arrival as the time of the event.
// https://plausible.io/docs/events-api
func (p *provider) plausible(ctx context.Context, group []store.Event) (string, error) {
	e := &group[0]
	m := plausibleMessage{
		Name: eventName(e), Domain: p.target.say.Get("domain"), URL: p.page(e, plausibleURL).String(),
		Props: map[string]string{"date": e.Time.UTC().Format(time.DateOnly)},
	}
	for name, value := range properties(e) {
		m.Props[name] = fmt.Sprint(value)
	}
	h, _, err := p.send(ctx, &m)
	if n := h.Get("X-Plausible-Dropped"); n != "" && n != "0" {
		return "Plausible drops the events: it does not know the domain, or mistakes this machine's address or this program's user agent for a bot's", nil
	}
	return "", err
}
