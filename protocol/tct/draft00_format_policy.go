package tct

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/protocol/kit"

	"github.com/millrace/millrace/protocol"
)

// policyProfile names the form of the policy descriptor (7.2).
const policyProfile = "tct-policy-1"

// policyDocument is the policy descriptor (7.2). nil and "" mean absent.
type policyDocument struct {
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
	Requirements struct {
		Attribution bool `json:"attribution_required"`
		LinkBack    bool `json:"link_back_required"`
		Notice      bool `json:"notice_required"`
	} `json:"requirements"`
	RateHints struct {
		PerSecond float64 `json:"max_requests_per_second,omitempty"`
		PerDay    float64 `json:"max_requests_per_day,omitempty"`
		Note      string  `json:"note,omitempty"`
	} `json:"rate_hints,omitzero"`
}

// encodePolicy gives the policy descriptor of a policy.
func encodePolicy(p *millrace.Policy) []byte {
	var w policyDocument
	w.Profile, w.Version = policyProfile, p.Revision
	w.Effective, w.Updated = kit.FormatTime(p.Effective), kit.FormatTime(p.Updated)
	w.PolicyURLs.Terms, w.PolicyURLs.Payment, w.PolicyURLs.Contact = p.Terms, p.Payment, p.Contact
	allowed := func(u millrace.Purpose) *bool {
		if yes, said := p.Purposes[u]; said {
			return &yes
		}
		return nil
	}
	w.Purposes.AIInput, w.Purposes.AITrain, w.Purposes.Search = allowed(millrace.AIInput), allowed(millrace.AITrain), allowed(millrace.Search)
	w.Requirements.Attribution, w.Requirements.LinkBack, w.Requirements.Notice = p.Requirements.Attribution, p.Requirements.LinkBack, p.Requirements.Notice
	w.RateHints.PerSecond, w.RateHints.PerDay, w.RateHints.Note = p.Rate.PerSecond, float64(p.Rate.PerDay), p.Rate.Note
	return encoded(w)
}

// encoded gives JSON as it is served: on one line, without escapes for HTML.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("tct: strings and numbers do not encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// policyLimits bound a policy descriptor.
var policyLimits = jsonio.Limits{Size: 1 << 20}

// decodePolicy reads a policy descriptor. Null is absent, and what is
// absent says nothing; a purpose or a limit that cannot be understood is an
// error, since nobody could keep to it. What should be a URL and is none is
// dropped.
// Errors are [*millrace.FormatError] without the URL, or ErrTooLarge.
func decodePolicy(body []byte) (*millrace.Policy, error) {
	var w policyDocument
	if err := jsonio.Unmarshal(body, &policyLimits, &w); err != nil {
		return nil, err
	}
	if w.Profile != "" && !strings.HasPrefix(w.Profile, "tct-policy") {
		return nil, &millrace.FormatError{Protocol: name00, Position: "/profile", Section: "7.2", Reason: "it is " + shortened(w.Profile) + ", no policy of TCT"}
	}
	if w.RateHints.PerDay >= 1<<31 {
		w.RateHints.PerDay = 0 // no limit that anybody reaches
	}
	p := &millrace.Policy{
		Terms: w.PolicyURLs.Terms, Payment: w.PolicyURLs.Payment, Contact: w.PolicyURLs.Contact,
		Effective: parseTime(w.Effective), Updated: parseTime(w.Updated), Revision: max(w.Version, 0),
		Requirements: millrace.Requirements{
			Attribution: w.Requirements.Attribution, LinkBack: w.Requirements.LinkBack, Notice: w.Requirements.Notice,
		},
		Rate: millrace.RateHints{
			PerSecond: w.RateHints.PerSecond, PerDay: int(math.Ceil(w.RateHints.PerDay)), Note: strings.Join(strings.Fields(w.RateHints.Note), " "),
		},
	}
	for _, m := range []struct {
		purpose millrace.Purpose
		allowed *bool
	}{{millrace.AIInput, w.Purposes.AIInput}, {millrace.AITrain, w.Purposes.AITrain}, {millrace.Search, w.Purposes.Search}} {
		if m.allowed != nil {
			if p.Purposes == nil {
				p.Purposes = make(map[millrace.Purpose]bool)
			}
			p.Purposes[m.purpose] = *m.allowed
		}
	}
	for _, u := range []*string{&p.Terms, &p.Payment, &p.Contact} {
		if (&millrace.Policy{Contact: *u}).Validate() != nil {
			*u = "" // words where a URL belongs lead nowhere
		}
	}
	if strings.HasPrefix(p.Terms, "mailto:") {
		p.Terms = ""
	}
	if strings.HasPrefix(p.Payment, "mailto:") {
		p.Payment = ""
	}
	if err := p.Validate(); err != nil {
		return nil, &millrace.FormatError{Protocol: name00, Section: "7.2", Reason: "it says what no policy can", Err: err}
	}
	return p, nil
}

// manifestDocument says which URLs have which M-URLs (3.3). The draft asks for
// a site-level manifest and gives no form; this one is ours.
type manifestDocument struct {
	Profile  string      `json:"profile"`
	Version  int         `json:"version"`
	Sitemap  string      `json:"sitemap"`
	Policy   string      `json:"policy,omitempty"`
	Patterns []pattern00 `json:"patterns"`
}

// pattern00 is a pair of URI templates (RFC 6570): pages whose C-URL is of the
// one have an M-URL of the other. {+path} starts with "/", unless it is empty.
type pattern00 struct {
	CURL string `json:"cUrl"`
	MURL string `json:"mUrl"`
	Note string `json:"note,omitempty"`
}

// newManifest gives the manifest of a site.
func newManifest(site millrace.Site, policy bool) *manifestDocument {
	base, docs := strings.TrimSuffix(site.Base, "/"), strings.TrimSuffix(site.EndpointBase, "/")
	m := &manifestDocument{
		Profile: profileName, Version: 1, Sitemap: docs + listName00,
		Patterns: []pattern00{
			{CURL: base + "{+path}/", MURL: docs + "{+path}" + docName00},
			{CURL: base + "{+path}", MURL: docs + "{+path}" + docName00},
			{CURL: base + "{+path}?{+query}", MURL: docs + "{+path}" + docName00 + "?{+query}"},
			{CURL: "{scheme}://{host}{+path}", MURL: docs + "/~{host}{+path}" + docName00, Note: "pages whose canonical URL is on another host"},
			{CURL: base + "{+path}", MURL: docs + "{+path}/~{n}" + docName00, Note: "pages whose M-URL another page has: n counts from 2"},
		},
	}
	if policy {
		m.Policy = docs + policyName
	}
	return m
}

// lastChanged gives when a policy was changed, as far as it says.
func lastChanged(p *millrace.Policy) time.Time {
	if p.Updated.IsZero() {
		return p.Effective
	}
	return p.Updated
}

// policyNames are the names of members (7.2).
var policyNames = protocol.MemberNames{
	Purposes: map[millrace.Purpose]string{
		millrace.AIInput: "purposes.allow_ai_input", millrace.AITrain: "purposes.allow_ai_train", millrace.Search: "purposes.allow_search_indexing",
	},
	PerSecond: "rate_hints.max_requests_per_second", PerDay: "rate_hints.max_requests_per_day",
}
