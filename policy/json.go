package policy

import (
	"math"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
)

// MaxSize is the maximum size in bytes of a JSON document that [ReadTCT] and [ReadARC] accept.
const MaxSize = 1 << 20

var limits = jsonio.Limits{Size: MaxSize}

// validated returns the policy of a remote site without invalid URLs. An invalid purpose or limit
// is an error, because no program could comply with it.
func validated(p *millrace.Policy, protocol, section string) (*millrace.Policy, error) {
	for _, u := range []struct {
		at    *string
		alone millrace.Policy
	}{
		{&p.Terms, millrace.Policy{Terms: p.Terms}},
		{&p.Payment, millrace.Policy{Payment: p.Payment}},
		{&p.Contact, millrace.Policy{Contact: p.Contact}},
	} {
		if u.alone.Validate() != nil {
			*u.at = ""
		}
	}
	if err := p.Validate(); err != nil {
		return nil, &millrace.FormatError{Protocol: protocol, Section: section, Reason: "invalid policy", Err: err}
	}
	return p, nil
}

// parseTime reads a time or a day, and cuts off fractions of a second. It returns the zero time for
// any other text.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			return t.UTC().Truncate(time.Second)
		}
	}
	return time.Time{}
}

// perDay rounds a number of requests per day up to an integer. If the number is too large for an
// int32, perDay returns 0.
func perDay(n float64) int {
	if n >= math.MaxInt32 {
		return 0
	}
	return int(math.Ceil(n))
}

// line returns a text as one line.
func line(s string) string { return strings.Join(strings.Fields(canon.ValidUTF8(s)), " ") }
