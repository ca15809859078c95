package tct

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol/kit"
)

// policyURL gives where the policy descriptor should be.
func policyURL(s *siteContext) string { return in(folderOf(s), policyName) }

// policyOf gives the policy descriptor that is where it should be, nil if there
// is none. HTML in its place is none.
func policyOf(ctx context.Context, s *siteContext) (*check.Response, error) {
	resp, err := s.Get(ctx, policyURL(s))
	if err != nil || resp.Status != http.StatusOK || weblink.IsHTML(resp.Header) {
		return nil, err
	}
	return resp, nil
}

// describedBy gives where the describedby links of the list lead.
func describedBy(s *siteContext) []string {
	var out []string
	for _, list := range s.Lists {
		for _, l := range kit.FieldLinks(list.Resp) {
			if l.Is("describedby", "") {
				out = append(out, l.URL)
			}
		}
	}
	return out
}

func checkPolicyPlace(ctx context.Context, s *siteContext, fail check.Fail) error {
	to := describedBy(s)
	if len(to) == 0 {
		return check.ErrNotApplicable
	}
	resp, err := policyOf(ctx, s)
	if err != nil {
		return err
	}
	if resp == nil {
		fail(policyURL(s), "no policy, while the list names "+strings.Join(to, ", "), "the policy descriptor")
	}
	return nil
}

func checkDescribedBy(ctx context.Context, s *siteContext, fail check.Fail) error {
	resp, err := policyOf(ctx, s)
	if err != nil {
		return err
	}
	if resp == nil || len(s.Lists) == 0 {
		return check.ErrNotApplicable
	}
	if !slices.Contains(describedBy(s), policyURL(s)) {
		fail(s.Lists[0].URL, linkField(s.Lists[0].Resp), `Link: <`+policyURL(s)+`>; rel="describedby"`)
	}
	return nil
}

// What the members of a policy descriptor can be (7.2).
var policyTypes = map[string]func(raw json.RawMessage) string{
	"profile":   isText,
	"version":   isCount,
	"effective": isMoment,
	"updated":   isMoment,

	"policy_urls.terms_of_service": isText,
	"policy_urls.payment_info":     isText,
	"policy_urls.contact":          isText,

	"purposes.allow_ai_input":        isBool,
	"purposes.allow_ai_train":        isBool,
	"purposes.allow_search_indexing": isBool,

	"requirements.attribution_required": isBool,
	"requirements.link_back_required":   isBool,
	"requirements.notice_required":      isBool,

	"rate_hints.max_requests_per_second": isRate,
	"rate_hints.max_requests_per_day":    isRate,
	"rate_hints.note":                    isText,
}

func isText(raw json.RawMessage) string {
	if _, ok := check.JSONText(raw); !ok {
		return "a string"
	}
	return ""
}

func isMoment(raw json.RawMessage) string {
	if s, ok := check.JSONText(raw); !ok || !isTimestamp(s) {
		return "a timestamp, such as 2025-10-01T00:00:00Z"
	}
	return ""
}

func isBool(raw json.RawMessage) string {
	if s := string(raw); s != "true" && s != "false" {
		return "true or false"
	}
	return ""
}

func isCount(raw json.RawMessage) string {
	var n float64
	if string(raw) == "null" || json.Unmarshal(raw, &n) != nil || n < 0 || n != math.Trunc(n) {
		return "a whole number"
	}
	return ""
}

func isRate(raw json.RawMessage) string {
	var n float64
	if string(raw) != "null" && (json.Unmarshal(raw, &n) != nil || n < 0) {
		return "a number, or null for no limit"
	}
	return ""
}

func checkPolicySchema(ctx context.Context, s *siteContext, fail check.Fail) error {
	resp, err := policyOf(ctx, s)
	if err != nil {
		return err
	}
	if to := describedBy(s); resp == nil && len(to) > 0 && s.Near(to[0]) {
		if resp, err = s.Get(ctx, to[0]); err != nil {
			return err
		}
	}
	if resp == nil || !resp.OK() {
		return check.ErrNotApplicable
	}
	members := kit.Object(kit.TrimBOM(resp.Body))
	if members == nil {
		fail(resp.URL, kit.Short(string(resp.Body)), "one JSON object")
		return nil
	}
	if profile, ok := check.JSONText(members["profile"]); !ok || profile == "" {
		fail(resp.URL, "profile: "+kit.Shown(members["profile"]), `a string, such as "`+policy.TCTProfile+`"`)
	}
	for _, name := range slices.Sorted(maps.Keys(policyTypes)) {
		group, inner, nested := strings.Cut(name, ".")
		raw := members[group]
		if nested {
			var in map[string]json.RawMessage
			if raw == nil || json.Unmarshal(raw, &in) == nil {
				raw = in[inner] // else no member of what is no object can be right
			}
		}
		if raw == nil || name == "profile" {
			continue
		}
		if want := policyTypes[name](raw); want != "" {
			fail(resp.URL, name+": "+kit.Short(string(raw)), want)
		}
	}
	return nil
}
