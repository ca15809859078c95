package analytics

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/store"
)

// hookMessage is one message. The same events are the same message.
type hookMessage struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the last event
	Data      struct {
		Site   string           `json:"site"`
		Events []map[string]any `json:"events"`
	} `json:"data"`
}

// postHook posts events to a server of the owner's, signed, many in one message.
// Beside the properties, an event has a number, by which the receiver knows those
// that come twice.
func postHook(ctx context.Context, hook *webhook.Sender, site string, group []store.Event) error {
	m := hookMessage{Type: "site.requested", Timestamp: group[len(group)-1].Time.UTC()}
	m.Data.Site = site
	for i := range group {
		e := &group[i]
		p := properties(e)
		p["number"], p["time"], p["path"], p["html_received"] = e.Number, e.Time.UTC(), e.Path, e.Received
		m.Data.Events = append(m.Data.Events, p)
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return err
	}
	return hook.Try(ctx, body)
}
