package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// readPolicy reads a configuration.
func readPolicy(t *testing.T, yaml string) (*millrace.Policy, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, name, yaml)
	c := New(environment(nil))
	if err := c.Load(name, known); err != nil {
		return nil, strings.TrimPrefix(err.Error(), name)
	}
	return c.Policy, ""
}

func TestPolicyBlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		yaml string
		want *millrace.Policy
		says string // expected error, from its line to the key
	}{
		{"listen: x\n", nil, ""},
		{`listen: x
policy:
  terms: https://example.com/terms/
  payment: "https://example.com/pricing/"
  contact: rights@example.com
  effective: 2026-01-31
  updated: 2026-02-01T12:00:00+02:00
  revision: 3
  purposes: {ai-train: false, ai-input: true}
  requirements:
    attribution: true
    link-back: false
    notice: true
  rate:
    per-second: 0.5
    per-day: 10_000
    note: |
      Please read at night.
  retention: 30d
  access: everybody
  consumers: [ExampleBot, OtherBot]
`, &millrace.Policy{
			Terms: "https://example.com/terms/", Payment: "https://example.com/pricing/", Contact: "mailto:rights@example.com",
			Effective: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Updated: time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC), Revision: 3,
			Purposes:     map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: true},
			Requirements: millrace.Requirements{Attribution: true, Notice: true},
			Rate:         millrace.RateHints{PerSecond: 0.5, PerDay: 10000, Note: "Please read at night."},
			Retention:    30 * 24 * time.Hour, Access: "everybody", Consumers: []string{"ExampleBot", "OtherBot"},
		}, ""},
		{"policy:\n  rate: {per-second: 2}\n", &millrace.Policy{Rate: millrace.RateHints{PerSecond: 2}}, ""},
		{"policy:\n", nil, `:1:1:`},
		{"policy: {}\n", nil, `:1:1:`},
		{"policy: no\n", nil, `:1:9:`},
		{"policy: [a]\n", nil, `:1:9:`},
		{"policy:\n  term: https://example.com/\n", nil, `:2:3:`},
		{"policy:\n  purposes: {train: false}\n", nil, `:2:14:`},
		{"policy:\n  purposes:\n    ai-train: no\n", nil, `:3:15: policy.purposes.ai-train`},
		{"policy:\n  purposes:\n    ai-train: \"false\"\n", nil, `:3:15: policy.purposes.ai-train`},
		{"policy:\n  purposes:\n    ai-train:\n", nil, `:3:5:`},
		{"policy:\n  purposes: true\n", nil, `:2:13: policy.purposes`},
		{"policy:\n  terms: /terms\n", nil, `:2:10: policy.terms`},
		{"policy:\n  terms: mailto:a@example.com\n", nil, `:2:10: policy.terms`},
		{"policy:\n  terms: 5\n", nil, `:2:10: policy.terms`},
		{"policy:\n  terms: ''\n", nil, `:2:10: policy.terms`},
		{"policy:\n  access: \"a\\nb\"\n", nil, `:2:11: policy.access`},
		{"policy:\n  effective: soon\n", nil, `:2:14: policy.effective`},
		{"policy:\n  updated: 2999-01-01\n", nil, `:2:12: policy.updated`},
		{"policy:\n  revision: 1.5\n", nil, `:2:13: policy.revision`},
		{"policy:\n  revision: 0\n", nil, `:2:13: policy.revision`},
		{"policy:\n  rate: {per-second: -1}\n", nil, `:2:22: policy.rate.per-second`},
		{"policy:\n  rate: {per-second: .nan}\n", nil, `:2:22: policy.rate.per-second`},
		{"policy:\n  rate: {per-second: .inf}\n", nil, `:2:22: policy.rate.per-second`},
		{"policy:\n  rate: {per-day: 1e99}\n", nil, `:2:19: policy.rate.per-day`},
		{"policy:\n  retention: 30\n", nil, `:2:14: policy.retention`},
		{"policy:\n  retention: 1.5s\n", nil, `:2:14: policy.retention`},
		{"policy:\n  consumers: ExampleBot\n", nil, `:2:14: policy.consumers`},
		{"policy:\n  consumers: [Example Bot]\n", nil, `:2:14: policy.consumers`},
		{"policy:\n  consumers: [A, A]\n", nil, `:2:14: policy.consumers`},
		{"policy:\n  access: &x everybody\n", nil, `:2:11: policy.access`},
		{"policy:\n  access: a\n  access: b\n", nil, `:3:3:`},
		{"policy: {access: a}\n---\npolicy: {access: b}\n", nil, `:3:1:`},
	} {
		got, says := readPolicy(t, c.yaml)
		if diff := cmp.Diff(c.want, got); diff != "" || !strings.HasPrefix(says, c.says) || c.says == "" && says != "" {
			t.Errorf("%s\nerror %q, want %q; (-want +got):\n%s", c.yaml, says, c.says, diff)
		}
	}
}

// The policy of the guide is valid.
func TestPolicyOfGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "set-a-usage-policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(guide), "```yaml\npolicy:\n  terms:")
	block, _, found := strings.Cut(block, "```")
	p, says := readPolicy(t, "policy:\n  terms:"+block)
	if !found || says != "" || p == nil || p.Rate.PerDay != 10000 || p.Retention != 30*24*time.Hour || len(p.Purposes) != 3 {
		t.Errorf("%s\n%s: %+v", block, says, p)
	}
}
