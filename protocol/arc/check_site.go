package arc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

func checkPointer(ctx context.Context, s *siteContext, fail check.Fail) error {
	if len(s.data) == 0 || s.list.fields == nil {
		return check.ErrNotApplicable
	}
	var got string
	for _, u := range s.data {
		l, why, err := s.fetchList(ctx, u)
		if err != nil {
			return err
		}
		if l != nil {
			return nil
		}
		got = cmp.Or(got, u+": "+why)
	}
	fail(s.home.URL, got, s.list.url)
	return nil
}

// listAt returns the list at a well-known location, or nil if there is no list.
func (s *siteContext) listAt(ctx context.Context, name string) (*seenList, error) {
	l, _, err := s.fetchList(ctx, s.At(name))
	return l, err
}

func checkPlace(ctx context.Context, s *siteContext, fail check.Fail) error {
	for _, name := range []string{pathList, pathWellKnown} {
		if l, err := s.listAt(ctx, name); l != nil || err != nil {
			return err
		}
	}
	if s.list.yaml {
		return check.ErrNotApplicable
	}
	fail(s.At(pathList), "no list; the list is at "+s.list.url, "the list")
	return nil
}

func checkSame(ctx context.Context, s *siteContext, fail check.Fail) error {
	var both []*seenList
	for _, name := range []string{pathList, pathWellKnown} {
		l, err := s.listAt(ctx, name)
		if err != nil {
			return err
		}
		if l != nil && l.fields != nil {
			both = append(both, l)
		}
	}
	if len(both) < 2 {
		return check.ErrNotApplicable
	}
	if got := differs(both[0], both[1]); got != "" {
		fail(both[1].url, got, "what "+both[0].url+" says")
	}
	return nil
}

// differs returns the first difference between two lists, or "" if they agree. Lists generated at
// different times may differ.
func differs(a, b *seenList) string {
	if string(a.fields["generated_at"]) != string(b.fields["generated_at"]) {
		return ""
	}
	if len(a.entries) != len(b.entries) {
		return fmt.Sprintf("%d pages, not %d", len(b.entries), len(a.entries))
	}
	states := map[string]string{}
	for _, e := range a.entries {
		states[e.url] = e.state()
	}
	for _, e := range b.entries {
		if is, ok := states[e.url]; !ok || is != e.state() {
			return e.at + " is " + e.url + ": " + e.state()
		}
	}
	return ""
}

// state returns a string that identifies the state of a page.
func (e *seenEntry) state() string {
	return strings.TrimSpace(e.text("ai_checksum") + " " + e.text("lastmod") + " " + string(e.fields["ai_indexable"]))
}

func checkParity(ctx context.Context, s *siteContext, fail check.Fail) error {
	if s.list.fields == nil || s.list.yaml {
		return check.ErrNotApplicable
	}
	twin, err := s.listAt(ctx, pathYAML)
	if err != nil {
		return err
	}
	switch {
	case twin == nil:
		return check.ErrNotApplicable
	case twin.fields == nil:
		fail(twin.url, twin.why, "the list in YAML")
	default:
		if got := differs(s.list, twin); got != "" {
			fail(twin.url, got, "what "+s.list.url+" says")
		}
	}
	return nil
}

func checkNamed(ctx context.Context, s *siteContext, fail check.Fail) error {
	if len(s.named) == 0 {
		fail(s.At("/robots.txt"), "no Sitemap line for the list", "Sitemap: "+s.list.url)
	}
	for _, u := range s.named[:min(len(s.named), maxListURLs)] {
		if !s.HasHost(u) {
			continue
		}
		if l, why, err := s.fetchList(ctx, u); err != nil {
			return err
		} else if l == nil {
			fail(s.At("/robots.txt"), "robots.txt names "+u+", which is not a list: "+why, "a list")
		}
	}
	return nil
}

func checkValidator(l *seenList, fail check.Fail) {
	if l.resp.Header.Get("ETag") == "" && l.resp.Header.Get("Last-Modified") == "" {
		fail(l.url, "no ETag and no Last-Modified", "a validator for conditional requests")
	}
}

// askProbe returns a check that runs f, which tests conditional requests, on the list.
func askProbe(f kit.Condition) siteCheck {
	return kit.Probes(func(s *siteContext) []*kit.Probe {
		if s.list.fields == nil {
			return nil
		}
		return []*kit.Probe{{
			Target: s.Target, URL: s.list.url, First: s.list.resp, What: "list",
			Tag: s.list.resp.Header.Get("ETag"), Other: `"millrace-check-another-tag"`,
		}}
	}, f)
}

// small is the size in bytes below which a list need not be compressed, because it fits in one
// packet.
const small = 1400

func checkGzip(ctx context.Context, s *siteContext, fail check.Fail) error {
	l := s.list
	if l.fields == nil || len(l.resp.Body) < small {
		return check.ErrNotApplicable
	}
	resp, err := s.Target.Do(ctx, http.MethodGet, l.url, http.Header{"Accept-Encoding": {"gzip"}})
	if err != nil {
		return err
	}
	if coding := resp.Header.Get("Content-Encoding"); resp.Status == http.StatusOK && !strings.EqualFold(coding, "gzip") {
		fail(l.url, fmt.Sprintf("%d bytes without a coding in response to Accept-Encoding: gzip", len(l.resp.Body)), "Content-Encoding: gzip")
	}
	return nil
}

// policy returns the response for the policy's URL, or nil if there is no policy.
func (s *siteContext) policy(ctx context.Context) (*check.Response, error) {
	resp, err := s.Target.Get(ctx, s.At(pathPolicy))
	if err != nil || !readable(resp) {
		return nil, err
	}
	return resp, nil
}

func checkPolicy(ctx context.Context, s *siteContext, fail check.Fail) error {
	resp, err := s.policy(ctx)
	if err == nil && resp == nil {
		fail(s.At(pathPolicy), "no policy", "a policy in JSON")
	}
	return err
}

func checkPolicyJSON(ctx context.Context, s *siteContext, fail check.Fail) error {
	resp, err := s.policy(ctx)
	if err != nil {
		return err
	}
	if resp == nil {
		return check.ErrNotApplicable
	}
	if kit.Object(kit.TrimBOM(resp.Body)) == nil {
		fail(resp.URL, kit.Short(string(resp.Body)), "one JSON object")
	}
	return nil
}

// checkPolicyFacts checks that the policy states three facts. The specification does not define the
// members, so several names are accepted.
func checkPolicyFacts(ctx context.Context, s *siteContext, fail check.Fail) error {
	resp, err := s.policy(ctx)
	if err != nil {
		return err
	}
	if resp == nil || kit.Object(kit.TrimBOM(resp.Body)) == nil {
		return check.ErrNotApplicable
	}
	names := strings.ToLower(strings.Join(slices.Sorted(maps.Keys(kit.Object(kit.TrimBOM(resp.Body)))), " "))
	var missing []string
	for _, about := range [][]string{{"retention", "retain", "storage"}, {"access"}, {"consumer", "agent", "approved", "bot"}} {
		if !slices.ContainsFunc(about, func(word string) bool { return strings.Contains(names, word) }) {
			missing = append(missing, about[0])
		}
	}
	if len(missing) > 0 {
		fail(resp.URL, "nothing about "+strings.Join(missing, ", "), "retention, access and approved consumers")
	}
	return nil
}

func checkRobotsTxt(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.robots == nil {
		return check.ErrNotApplicable
	}
	if !s.allows(s.list.url) {
		fail(s.At("/robots.txt"), "robots.txt disallows "+s.list.url, "a list that agents may request")
	}
	list := strings.TrimPrefix(s.list.url, canon.Origin(s.Target.Root()))
	for _, e := range s.list.entries {
		if e.open() && e.url != "" && s.HasHost(e.url) && !s.allows(e.url) && !s.robots.Overruled(strings.TrimPrefix(e.url, canon.Origin(e.url)), list) {
			fail(s.list.url, e.at+": "+e.url+" may be indexed, but robots.txt disallows it", "an entry that agrees with robots.txt")
		}
	}
	return nil
}
