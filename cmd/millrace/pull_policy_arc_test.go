package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An ARC policy document applies to all ways, if robots.txt announces ARC. Otherwise
// pull does not fetch it.
func TestPullPolicyOfARC(t *testing.T) {
	t.Parallel()
	const document = "/.well-known/arc-policy.json"
	for _, speaks := range []bool{true, false} {
		s := newPolicySite(t, 2, says(404, "text/plain", "no"))
		if speaks {
			s.robots = "Sitemap: " + s.URL + "/arc-sitemap.json\n"
		}
		s.also = map[string]http.HandlerFunc{document: says(200, "application/json", `{"purposes":{"ai-input":false},"retention_seconds":60}`)}
		file := filepath.Join(t.TempDir(), "mirror.db")
		r, code := tryPull(t, s.URL, file, "--via", "tct-01")
		asked := slices.Contains(s.since(), document)
		if forbidden := code == exitFailure && r.Code == "policy-refuses" && strings.Contains(r.Error, s.URL+document); forbidden != speaks || asked != speaks {
			t.Errorf("robots.txt names an ARC list: %t; requested: %t, exit %d: %s", speaks, asked, code, r.Error)
		}
		if r, code := tryPull(t, s.URL, file, "--via", "tct-01", "--purpose", "search"); code != exitGood || (r.Policy != nil && r.Policy.Retention == 60) != speaks {
			t.Errorf("for another purpose: exit %d, %+v", code, r)
		}
	}
}
