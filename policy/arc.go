package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// arcDocument is the policy document of ARC (E.6). The specification names the subjects of a
// policy, "retention, access, and approved AI consumers", but defines no format, so this format is
// specific to millrace. The values "", 0 and nil mean absent.
type arcDocument struct {
	Revision  int    `json:"revision,omitempty"`
	Effective string `json:"effective,omitempty"`
	Updated   string `json:"updated,omitempty"`

	Terms   string `json:"terms,omitempty"`
	Payment string `json:"payment,omitempty"`
	Contact string `json:"contact,omitempty"`

	Purposes     map[millrace.Purpose]bool `json:"purposes,omitempty"`
	Requirements arcRequirements           `json:"requirements,omitzero"`
	Rate         string                    `json:"crawl_rate,omitempty"` // rate in the format of an ARC list (E.7)
	PerDay       float64                   `json:"requests_per_day,omitempty"`
	Note         string                    `json:"crawl_note,omitempty"`

	Retention float64  `json:"retention_seconds,omitempty"`
	Access    string   `json:"access,omitempty"`
	Consumers []string `json:"approved_consumers,omitempty"`
}

// arcRequirements is the JSON form of [millrace.Requirements].
type arcRequirements struct {
	Attribution bool `json:"attribution"`
	LinkBack    bool `json:"link_back"`
	Notice      bool `json:"notice"`
}

// ARCNames contains the names of the members that restrict readers.
var ARCNames = protocol.MemberNames{
	Purposes: map[millrace.Purpose]string{
		millrace.AIInput: "purposes.ai-input", millrace.AITrain: "purposes.ai-train", millrace.Search: "purposes.search",
	},
	PerSecond: "crawl_rate", PerDay: "requests_per_day",
}

// WriteARC returns the policy document of ARC.
func WriteARC(p *millrace.Policy) []byte {
	return jsonio.Encode(arcDocument{
		Revision: p.Revision, Effective: kit.FormatTime(p.Effective), Updated: kit.FormatTime(p.Updated),
		Terms: p.Terms, Payment: p.Payment, Contact: p.Contact, Purposes: p.Purposes, Requirements: arcRequirements(p.Requirements),
		Rate: WriteARCRate(millrace.RateHints{PerSecond: p.Rate.PerSecond}), PerDay: float64(p.Rate.PerDay), Note: p.Rate.Note,
		Retention: p.Retention.Seconds(), Access: p.Access, Consumers: p.Consumers,
	})
}

// ReadARC reads a policy document in the format of [WriteARC]. A member with the value null is
// absent. Invalid URLs are ignored, but an invalid purpose or limit is an error. The error is
// ErrTooLarge, or a [*millrace.FormatError] without a URL.
func ReadARC(body []byte) (*millrace.Policy, error) {
	var d arcDocument
	if err := jsonio.Unmarshal(body, &limits, &d); err != nil {
		return nil, err
	}
	p := &millrace.Policy{
		Revision: max(d.Revision, 0), Effective: parseTime(d.Effective), Updated: parseTime(d.Updated),
		Terms: d.Terms, Payment: d.Payment, Contact: d.Contact, Purposes: d.Purposes, Requirements: millrace.Requirements(d.Requirements),
		Rate:   millrace.RateHints{PerDay: perDay(d.PerDay), Note: line(d.Note)},
		Access: line(d.Access), Consumers: d.Consumers,
	}
	if d.Rate != "" {
		var ok bool
		if p.Rate.PerSecond, ok = ReadARCRate(d.Rate); !ok {
			return nil, &millrace.FormatError{Protocol: "arc", Position: "/crawl_rate", Section: "E.7", Reason: fmt.Sprintf("%.100q is not a rate such as 1/s", d.Rate)}
		}
	}
	if d.Retention < float64(1<<62)/float64(time.Second) {
		p.Retention = time.Duration(d.Retention) * time.Second
	}
	return validated(p, "arc", "E.6")
}

// periods are the units of a rate (E.7). The specification has only the example "1/s".
var periods = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour,
}

// WriteARCRate returns the rate of a policy in the format of an ARC list, such as "1/s". It returns
// "" if the policy has no rate.
func WriteARCRate(r millrace.RateHints) string {
	switch {
	case r.PerSecond > 0:
		return strconv.FormatFloat(r.PerSecond, 'f', -1, 64) + "/s"
	case r.PerDay > 0:
		return strconv.Itoa(r.PerDay) + "/d"
	}
	return ""
}

// ReadARCRate reads a rate such as "1/s" or "30/min", and returns the number of requests per
// second. It returns false for invalid text.
func ReadARCRate(s string) (perSecond float64, ok bool) {
	count, unit, _ := strings.Cut(strings.ToLower(s), "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
	per := periods[strings.TrimSpace(unit)]
	if err != nil || !(n > 0 && n < 1e9) || per == 0 {
		return 0, false
	}
	return n / per.Seconds(), true
}
