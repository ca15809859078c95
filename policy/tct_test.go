package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// draftPolicy is the example in the draft (7.2).
const draftPolicy = `{
  "profile": "tct-policy-1",
  "version": 1,
  "effective": "2025-10-01T00:00:00Z",
  "updated": "2025-10-15T12:00:00Z",
  "policy_urls": {
    "terms_of_service": "https://example.com/terms/",
    "payment_info": "https://example.com/pricing/",
    "contact": "https://example.com/contact/"
  },
  "purposes": {"allow_ai_input": true, "allow_ai_train": false, "allow_search_indexing": true},
  "requirements": {"attribution_required": true, "link_back_required": false, "notice_required": true},
  "rate_hints": {"max_requests_per_second": null, "max_requests_per_day": 10000, "note": "Advisory limits, for all"}
}`

func TestReadTCT(t *testing.T) {
	example := &millrace.Policy{
		Terms: "https://example.com/terms/", Payment: "https://example.com/pricing/", Contact: "https://example.com/contact/",
		Effective: time.Date(2025, 10, 1, 0, 0, 0, 0, time.UTC), Updated: time.Date(2025, 10, 15, 12, 0, 0, 0, time.UTC), Revision: 1,
		Purposes:     map[millrace.Purpose]bool{millrace.AIInput: true, millrace.AITrain: false, millrace.Search: true},
		Requirements: millrace.Requirements{Attribution: true, Notice: true},
		Rate:         millrace.RateHints{PerDay: 10_000, Note: "Advisory limits, for all"},
	}
	for _, c := range []struct {
		name, doc string
		want      *millrace.Policy // nil means an error
		fault     string
	}{
		{"the draft's", draftPolicy, example, ""},
		{"nothing", `{}`, &millrace.Policy{}, ""},
		{"nulls", `{"profile":null,"version":null,"policy_urls":null,"purposes":{"allow_ai_train":null},"rate_hints":null}`, &millrace.Policy{}, ""},
		{"unknown members", `{"x":{"y":1},"purposes":{"allow_dreaming":true}}`, &millrace.Policy{}, ""},
		{"words for URLs", `{"policy_urls":{"terms_of_service":"ask us","contact":"mailto:a@b.example"}}`, &millrace.Policy{Contact: "mailto:a@b.example"}, ""},
		{"half a request a day", `{"rate_hints":{"max_requests_per_day":0.5}}`, &millrace.Policy{Rate: millrace.RateHints{PerDay: 1}}, ""},
		{"no limit anybody reaches", `{"rate_hints":{"max_requests_per_day":1e300}}`, &millrace.Policy{}, ""},
		{"a string for a boolean", `{"purposes":{"allow_ai_train":"no"}}`, nil, "json-type line 1, byte 30 (/purposes/allow_ai_train)"},
		{"a list for an object", `{"purposes":[]}`, nil, "json-type line 1, byte 12 (/purposes)"},
		{"a rate below zero", `{"rate_hints":{"max_requests_per_second":-1}}`, nil, "tct-00/7.2"},
		{"another thing", `{"profile":"privacy-2"}`, nil, "tct-00/7.2 /profile"},
		{"twice", `{"purposes":{},"purposes":{}}`, nil, "json-duplicate line 1, byte 15 (/purposes)"},
		{"an array", `[]`, nil, "json-type line 1, byte 0"},
		{"cut", draftPolicy[:200], nil, "json-truncated line 8, byte 200 (/policy_urls)"},
		{"too long", `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, nil, "json-size"},
	} {
		p, err := ReadTCT([]byte(c.doc))
		if c.want != nil {
			if diff := cmp.Diff(c.want, p); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
			}
			continue
		}
		if got := protocoltest.ErrorAt(err); got != c.fault {
			t.Errorf("%s: %+v, %s, want %s: %v", c.name, p, got, c.fault, err)
		}
	}
}

// A policy of another site is the same after it is read and published again.
func FuzzTCT(f *testing.F) {
	f.Add([]byte(draftPolicy))
	f.Add([]byte(`{"rate_hints":{"max_requests_per_second":1e-7,"note":"a\nb"}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := ReadTCT(doc)
		if err != nil {
			if !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("%q is read as %+v: %v", doc, p, err)
		}
		again, err := ReadTCT(WriteTCT(p))
		if diff := cmp.Diff(p, again); err != nil || diff != "" {
			t.Fatalf("%v (-read +read again):\n%s", err, diff)
		}
	})
}
