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

// ga4 posts by the Measurement Protocol of Google Analytics 4 to /mp/collect. An
// answer does not say whether anything has been understood.
// https://developers.google.com/analytics/devguides/collection/protocol/ga4/reference
type ga4 struct {
	provider
	site string
}

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
	Name      string    `json:"name"`
	Timestamp int64     `json:"timestamp_micros"`
	Params    ga4Params `json:"params"`
}

// ga4Params names its members as OpenFeeder 1.0 does, section 12. It has at most 25 members, whose names have at most 40 characters and
// begin with none of those that are reserved.
type ga4Params struct {
	Session    string `json:"session_id"` // of a bot and a day
	Engagement int64  `json:"engagement_time_msec"`
	Location   string `json:"page_location"`
	Bot        string `json:"bot_name"`
	Family     string `json:"bot_family,omitempty"`
	Verdict    string `json:"verdict,omitempty"`
	Protocol   string `json:"protocol"`
	Endpoint   string `json:"endpoint"`
	Query      string `json:"query,omitempty"`
	Intent     string `json:"intent,omitempty"`
	Results    int64  `json:"results"`
	Status     int    `json:"status"`
	Outcome    string `json:"outcome"`
	Cached     int    `json:"cached"` // 0 or 1
	Bytes      int64  `json:"bytes"`
	Size       int64  `json:"size"`
	HTML       int64  `json:"html"`
	Response   int64  `json:"response_ms"`
}

// group puts the events of each bot together: a request is about one client.
func (g *ga4) group(events []store.Event) [][]store.Event {
	var out [][]store.Event
	open := make(map[string]int) // by the bot, the group that has room
	for _, e := range events {
		i, ok := open[e.Bot]
		if !ok || len(out[i]) >= receivers[GA4].together {
			i = len(out)
			open[e.Bot] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], e)
	}
	return out
}

func (g *ga4) post(ctx context.Context, group []store.Event) (string, error) {
	now := g.now()
	m := ga4Message{Client: g.client(group[0].Bot), Consent: ga4Consent{"DENIED", "DENIED"}}
	for i := range group {
		e := &group[i]
		at := past(e.Time, now)
		m.Timestamp = at.UnixMicro()
		m.Events = append(m.Events, ga4Event{eventName(e), m.Timestamp, ga4Params{
			Session: strconv.FormatInt(at.UTC().Truncate(24*time.Hour).Unix(), 10), Engagement: 1,
			Location: g.page(e, ga4Location).String(), Bot: leading(e.Bot, ga4Value), Family: leading(e.Family, ga4Value),
			Verdict: string(e.Identity), Protocol: leading(e.Protocol, ga4Value), Endpoint: string(e.Endpoint),
			Query: leading(e.Query, ga4Value), Intent: leading(e.Intent, ga4Value), Results: e.Results, Status: e.Status,
			Outcome: string(store.OutcomeOf(e.Status)), Cached: bit(e.Cached), Bytes: e.Bytes, Size: e.Size, HTML: e.HTML,
			Response: milliseconds(e),
		}})
	}
	_, _, err := g.send(ctx, &m)
	return "", err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// client gives the client that a bot is: two numbers, as the script for browsers
// makes them, of nothing but the site and the bot's name.
func (g *ga4) client(bot string) string {
	sum := sha256.Sum256([]byte(g.site + "\n" + bot))
	return fmt.Sprintf("%d.%d", binary.BigEndian.Uint32(sum[:4]), binary.BigEndian.Uint32(sum[4:8]))
}
