package tct

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/policy"
)

// policyURL returns the URL at which the policy descriptor should be.
func policyURL(s *siteContext) string { return in(folderOf(s), policyName) }

// policyOf returns the response for the policy descriptor, or nil if there is no descriptor. An
// HTML response counts as no descriptor.
func policyOf(ctx context.Context, s *siteContext) (*check.Response, error) {
	resp, err := s.Get(ctx, policyURL(s))
	if err != nil || resp.Status != http.StatusOK || weblink.IsHTML(resp.Header) {
		return nil, err
	}
	return resp, nil
}

// describedBy returns the targets of the describedby links of the list.
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
		fail(policyURL(s), "no policy, although the list links to "+strings.Join(to, ", "), "the policy descriptor")
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

// policyKinds are the types of the members of a policy descriptor (7.2).
var policyKinds = map[string]kit.Kind{
	"profile":   kit.TextKind(`a string, such as "`+policy.TCTProfile+`"`, func(s string) bool { return s != "" }),
	"version":   kit.IsNumber,
	"effective": isMoment,
	"updated":   isMoment,

	"policy_urls.terms_of_service": kit.IsText,
	"policy_urls.payment_info":     kit.IsText,
	"policy_urls.contact":          kit.IsText,

	"purposes.allow_ai_input":        kit.IsBool,
	"purposes.allow_ai_train":        kit.IsBool,
	"purposes.allow_search_indexing": kit.IsBool,

	"requirements.attribution_required": kit.IsBool,
	"requirements.link_back_required":   kit.IsBool,
	"requirements.notice_required":      kit.IsBool,

	"rate_hints.max_requests_per_second": isRate,
	"rate_hints.max_requests_per_day":    isRate,
	"rate_hints.note":                    kit.IsText,
}

var (
	isMoment = kit.TextKind("a timestamp, such as 2025-10-01T00:00:00Z", isTimestamp)
	isRate   = kit.Kind{Want: "a number, or null for no limit", OK: kit.NumberKind("", func(f float64) bool { return f >= 0 }).OrNull().OK}
)

func checkPolicySchema(ctx context.Context, s *siteContext, fail check.Fail) error {
	resp, err := policyOf(ctx, s)
	if err != nil {
		return err
	}
	if to := describedBy(s); resp == nil && len(to) > 0 && s.HasHost(to[0]) {
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
	for _, name := range slices.Sorted(maps.Keys(policyKinds)) {
		group, inner, nested := strings.Cut(name, ".")
		raw := members[group]
		if in := kit.Object(raw); nested && (in != nil || raw == nil || string(raw) == "null") {
			raw = in[inner] // without the object, no member can be valid
		}
		if k := policyKinds[name]; (raw != nil || name == "profile") && !k.OK(raw) {
			fail(resp.URL, name+": "+kit.ShortJSON(raw), k.Want)
		}
	}
	return nil
}
