package arc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/protocol/kit"
)

// policyDocument is the policy (E.6). The specification says what it is about,
// "retention, access, and approved AI consumers", and leaves its form open;
// this one is ours. "", 0 and nil mean absent.
type policyDocument struct {
	Revision  int    `json:"revision,omitempty"`
	Effective string `json:"effective,omitempty"`
	Updated   string `json:"updated,omitempty"`

	Terms   string `json:"terms,omitempty"`
	Payment string `json:"payment,omitempty"`
	Contact string `json:"contact,omitempty"`

	Purposes     map[millrace.Purpose]bool `json:"purposes,omitempty"`
	Requirements struct {
		Attribution bool `json:"attribution"`
		LinkBack    bool `json:"link_back"`
		Notice      bool `json:"notice"`
	} `json:"requirements,omitzero"`
	Rate   string  `json:"crawl_rate,omitempty"` // as in a list (E.7)
	PerDay float64 `json:"requests_per_day,omitempty"`
	Note   string  `json:"crawl_note,omitempty"`

	Retention float64  `json:"retention_seconds,omitempty"`
	Access    string   `json:"access,omitempty"`
	Consumers []string `json:"approved_consumers,omitempty"`
}

// encodePolicy gives the policy document of a policy.
func encodePolicy(p *millrace.Policy) []byte {
	w := policyDocument{
		Revision: p.Revision, Effective: kit.FormatTime(p.Effective), Updated: kit.FormatTime(p.Updated),
		Terms: p.Terms, Payment: p.Payment, Contact: p.Contact, Purposes: p.Purposes,
		PerDay: float64(p.Rate.PerDay), Note: p.Rate.Note,
		Retention: p.Retention.Seconds(), Access: p.Access, Consumers: p.Consumers,
	}
	if p.Rate.PerSecond > 0 {
		w.Rate = crawlRate(p.Rate)
	}
	w.Requirements.Attribution, w.Requirements.LinkBack, w.Requirements.Notice = p.Requirements.Attribution, p.Requirements.LinkBack, p.Requirements.Notice
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(w); err != nil {
		panic("arc: strings and numbers do not encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// readPolicy reads a policy document of that form. Null and what is absent say
// nothing; a purpose or a limit that cannot be understood is an error, since
// nobody could keep to it. What should be a URL and is none is dropped.
// Errors are [*millrace.FormatError] without the URL, or ErrTooLarge.
func readPolicy(body []byte) (*millrace.Policy, error) {
	var w policyDocument
	if err := jsonio.Unmarshal(body, &jsonio.Limits{Size: 1 << 20}, &w); err != nil {
		return nil, formatError(err, "", "E.6")
	}
	p := &millrace.Policy{
		Revision: max(w.Revision, 0), Effective: parseTime(w.Effective), Updated: parseTime(w.Updated),
		Terms: w.Terms, Payment: w.Payment, Contact: w.Contact, Purposes: w.Purposes,
		Requirements: millrace.Requirements{
			Attribution: w.Requirements.Attribution, LinkBack: w.Requirements.LinkBack, Notice: w.Requirements.Notice,
		},
		Rate:   millrace.RateHints{Note: cutSpace(w.Note)},
		Access: cutSpace(w.Access), Consumers: w.Consumers,
	}
	if w.Rate != "" {
		n, per, ok := splitRate(w.Rate)
		if !ok {
			return nil, invalid("/crawl_rate", "E.7", fmt.Sprintf("%q is no rate, such as 1/s", short(w.Rate)))
		}
		p.Rate.PerSecond = n / per.Seconds()
	}
	if w.PerDay < 1<<31 {
		p.Rate.PerDay = int(w.PerDay)
	}
	if w.Retention < float64(1<<62)/float64(time.Second) {
		p.Retention = time.Duration(w.Retention) * time.Second
	}
	for _, u := range []*string{&p.Terms, &p.Payment, &p.Contact} {
		lone := &millrace.Policy{Terms: *u}
		if u == &p.Contact {
			lone = &millrace.Policy{Contact: *u}
		}
		if lone.Validate() != nil {
			*u = "" // words where a URL belongs lead nowhere
		}
	}
	if err := p.Validate(); err != nil {
		return nil, &millrace.FormatError{Protocol: Name, Section: "E.6", Reason: "it says what no policy can", Err: err}
	}
	return p, nil
}
