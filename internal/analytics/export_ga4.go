package analytics

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace/store"
)

// Maximum lengths of values, in characters.
const (
	ga4Value    = 100
	ga4Location = 1000
)

type ga4Message struct {
	Client    string     `json:"client_id"`
	Timestamp int64      `json:"timestamp_micros"` // time of the last event; some reports use only this time
	Consent   ga4Consent `json:"consent"`
	Events    []ga4Event `json:"events"`
}

// ga4Consent denies the use of events for advertising.
type ga4Consent struct {
	UserData        string `json:"ad_user_data"`
	Personalization string `json:"ad_personalization"`
}

type ga4Event struct {
	Name      string         `json:"name"`
	Timestamp int64          `json:"timestamp_micros"`
	Params    map[string]any `json:"params"` // at most 25, with names of at most 40 characters
}

// ga4 posts to /mp/collect with the Measurement Protocol of Google Analytics 4. The response
// does not report whether the events were valid.
// https://developers.google.com/analytics/devguides/collection/protocol/ga4/reference
func (p *provider) ga4(ctx context.Context, group []store.Event) (string, error) {
	m := ga4Message{Client: ga4Bot(p.site, group[0].Bot), Consent: ga4Consent{"DENIED", "DENIED"}}
	for i := range group {
		e := &group[i]
		at := past(e.Time, p.now())
		m.Timestamp = at.UnixMicro()
		params := properties(e)
		for name, value := range params {
			switch v := value.(type) {
			case string:
				params[name] = leading(v, ga4Value)
			case bool:
				params[name] = map[bool]int{true: 1}[v]
			}
		}
		params["session_id"] = strconv.FormatInt(at.UTC().Truncate(24*time.Hour).Unix(), 10) // one session per bot and day
		params["engagement_time_msec"] = 1
		params["page_location"] = p.page(e, ga4Location).String()
		m.Events = append(m.Events, ga4Event{eventName(e), m.Timestamp, params})
	}
	_, _, err := p.send(ctx, &m)
	return "", err
}

// ga4Bot returns the client ID of a bot: two numbers, in the form that Google's script uses. They
// are derived from the site and the name of the bot.
func ga4Bot(site, bot string) string {
	sum := sha256.Sum256([]byte(site + "\n" + bot))
	return fmt.Sprintf("%d.%d", binary.BigEndian.Uint32(sum[:4]), binary.BigEndian.Uint32(sum[4:8]))
}
