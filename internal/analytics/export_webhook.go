package analytics

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/webhook"
	"github.com/millrace/millrace/store"
)

// hookMessage is one message. The same events always produce the same message.
type hookMessage struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // time of the last event
	Data      struct {
		Site   string           `json:"site"`
		Events []map[string]any `json:"events"`
	} `json:"data"`
}

// postHook posts signed events to a webhook, many per message. The number of an
// event identifies duplicates.
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
