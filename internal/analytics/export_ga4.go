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

// Most characters of a value.
const (
	ga4Value    = 100
	ga4Location = 1000
)

type ga4Message struct {
	Client    string     `json:"client_id"`
	Timestamp int64      `json:"timestamp_micros"` // of the last event, for those who do not look at each
	Consent   ga4Consent `json:"consent"`
	Events    []ga4Event `json:"events"`
}

// ga4Consent says that nothing of it is for advertising.
type ga4Consent struct {
	UserData        string `json:"ad_user_data"`
	Personalization string `json:"ad_personalization"`
}

type ga4Event struct {
	Name      string         `json:"name"`
	Timestamp int64          `json:"timestamp_micros"`
	Params    map[string]any `json:"params"` // at most 25, whose names have at most 40 characters
}

// ga4 posts by the Measurement Protocol of Google Analytics 4 to /mp/collect. An
// answer does not say whether anything has been understood.
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
		params["session_id"] = strconv.FormatInt(at.UTC().Truncate(24*time.Hour).Unix(), 10) // of a bot and a day
		params["engagement_time_msec"] = 1
		params["page_location"] = p.page(e, ga4Location).String()
		m.Events = append(m.Events, ga4Event{eventName(e), m.Timestamp, params})
	}
	_, _, err := p.send(ctx, &m)
	return "", err
}

// ga4Bot returns the client that a bot is: two numbers, as the script for
// browsers makes them, of nothing but the site and the bot's name.
func ga4Bot(site, bot string) string {
	sum := sha256.Sum256([]byte(site + "\n" + bot))
	return fmt.Sprintf("%d.%d", binary.BigEndian.Uint32(sum[:4]), binary.BigEndian.Uint32(sum[4:8]))
}
