package policy

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// TCTProfile is the profile of TCT's policy descriptor (draft-00, section 7.2).
const TCTProfile = "tct-policy-1"

// tctDocument is the policy descriptor (7.2). The values nil and "" mean absent.
type tctDocument struct {
	Profile   string `json:"profile,omitempty"`
	Version   int    `json:"version,omitempty"`
	Effective string `json:"effective,omitempty"`
	Updated   string `json:"updated,omitempty"`

	PolicyURLs struct {
		Terms   string `json:"terms_of_service,omitempty"`
		Payment string `json:"payment_info,omitempty"`
		Contact string `json:"contact,omitempty"`
	} `json:"policy_urls,omitzero"`
	Purposes struct {
		AIInput *bool `json:"allow_ai_input,omitempty"`
		AITrain *bool `json:"allow_ai_train,omitempty"`
		Search  *bool `json:"allow_search_indexing,omitempty"`
	} `json:"purposes,omitzero"`
	Requirements tctRequirements `json:"requirements"`
	RateHints    struct {
		PerSecond float64 `json:"max_requests_per_second,omitempty"`
		PerDay    float64 `json:"max_requests_per_day,omitempty"`
		Note      string  `json:"note,omitempty"`
	} `json:"rate_hints,omitzero"`
}

// tctRequirements is the JSON form of [millrace.Requirements].
type tctRequirements struct {
	Attribution bool `json:"attribution_required"`
	LinkBack    bool `json:"link_back_required"`
	Notice      bool `json:"notice_required"`
}

// TCTNames contains the names of the members that restrict readers.
var TCTNames = protocol.MemberNames{
	Purposes: map[millrace.Purpose]string{
		millrace.AIInput: "purposes.allow_ai_input", millrace.AITrain: "purposes.allow_ai_train", millrace.Search: "purposes.allow_search_indexing",
	},
	PerSecond: "rate_hints.max_requests_per_second", PerDay: "rate_hints.max_requests_per_day",
}

// purposes returns a pointer to the member for each purpose.
func (d *tctDocument) purposes() map[millrace.Purpose]**bool {
	return map[millrace.Purpose]**bool{millrace.AIInput: &d.Purposes.AIInput, millrace.AITrain: &d.Purposes.AITrain, millrace.Search: &d.Purposes.Search}
}

// WriteTCT returns the policy descriptor of TCT draft-00. The descriptor has no members for
// retention, access and approved consumers.
func WriteTCT(p *millrace.Policy) []byte {
	d := tctDocument{
		Profile: TCTProfile, Version: p.Revision, Effective: kit.FormatTime(p.Effective), Updated: kit.FormatTime(p.Updated),
		Requirements: tctRequirements(p.Requirements),
	}
	d.PolicyURLs.Terms, d.PolicyURLs.Payment, d.PolicyURLs.Contact = p.Terms, p.Payment, p.Contact
	for purpose, member := range d.purposes() {
		if yes, stated := p.Purposes[purpose]; stated {
			*member = &yes
		}
	}
	d.RateHints.PerSecond, d.RateHints.PerDay, d.RateHints.Note = p.Rate.PerSecond, float64(p.Rate.PerDay), p.Rate.Note
	return jsonio.Encode(d)
}

// ReadTCT reads a policy descriptor of TCT. A member with the value null is absent. Invalid URLs are
// ignored, but an invalid purpose or limit is an error. The error is ErrTooLarge, or a
// [*millrace.FormatError] without a URL.
func ReadTCT(body []byte) (*millrace.Policy, error) {
	var d tctDocument
	if err := jsonio.Unmarshal(body, &limits, &d); err != nil {
		return nil, err
	}
	if d.Profile != "" && !strings.HasPrefix(d.Profile, "tct-policy") {
		return nil, &millrace.FormatError{Protocol: "tct-00", Position: "/profile", Section: "7.2", Reason: fmt.Sprintf("%.100s is not the profile of a TCT policy", d.Profile)}
	}
	p := &millrace.Policy{
		Terms: d.PolicyURLs.Terms, Payment: d.PolicyURLs.Payment, Contact: d.PolicyURLs.Contact,
		Effective: parseTime(d.Effective), Updated: parseTime(d.Updated), Revision: max(d.Version, 0),
		Requirements: millrace.Requirements(d.Requirements),
		Rate:         millrace.RateHints{PerSecond: d.RateHints.PerSecond, PerDay: perDay(d.RateHints.PerDay), Note: line(d.RateHints.Note)},
	}
	for purpose, member := range d.purposes() {
		if *member == nil {
			continue
		}
		if p.Purposes == nil {
			p.Purposes = make(map[millrace.Purpose]bool)
		}
		p.Purposes[purpose] = **member
	}
	return validated(p, "tct-00", "7.2")
}
