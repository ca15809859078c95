package protocoltest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/check"
)

// Checked runs the rules of a protocol against a target.
func Checked(t *testing.T, name string, rules []check.Rule, target *check.Target) *check.Report {
	t.Helper()
	r, err := check.Run(t.Context(), target, []check.Suite{{Name: name, Rules: rules}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Explain logs a report in the format of the command's output.
func Explain(t *testing.T, r *check.Report) {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
}

// AllPassed reports an error if a rule did not pass or has findings. The rules in spare may be not
// applicable.
func AllPassed(t *testing.T, r *check.Report, spare ...string) {
	t.Helper()
	for _, o := range r.Outcomes {
		if o.State != check.Passed && (o.State != check.NotApplicable || !slices.Contains(spare, o.Rule.ID)) {
			t.Errorf("%s: %s %s", o.Rule.ID, o.State, o.Reason)
		}
	}
	if len(r.Findings) > 0 || r.Failed() {
		Explain(t, r)
	}
}

// OneFailed reports an error unless exactly the given rule failed and all other rules ran.
func OneFailed(t *testing.T, r *check.Report, rule string) {
	t.Helper()
	var failed []string
	for _, o := range r.Outcomes {
		if o.State == check.NotRun {
			t.Errorf("%s was not run: %s", o.Rule.ID, o.Reason)
		}
		if o.State == check.Failed {
			failed = append(failed, o.Rule.ID)
		}
	}
	if diff := cmp.Diff([]string{rule}, failed); diff != "" {
		t.Error(diff)
		Explain(t, r)
	}
}

// ruleID matches a rule's ID without the name of its protocol: a section and a word.
var ruleID = regexp.MustCompile(`^[A-Za-z0-9.-]+/[a-z0-9-]+$`)

// WellFormed reports an error for rules without a unique ID, a section, a sentence or a level, and
// for rules that no fault violates. faults are the rules of the faults.
func WellFormed(t *testing.T, name string, rules []check.Rule, faults []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range rules {
		if seen[r.ID] {
			t.Errorf("duplicate rule %s", r.ID)
		}
		seen[r.ID] = true
		if own, ok := strings.CutPrefix(r.ID, name+"/"); !ok || !ruleID.MatchString(own) || r.Sentence == "" || r.Section == "" || r.Level != check.Must && r.Level != check.Should {
			t.Errorf("%+v", r)
		}
		if !slices.Contains(faults, r.ID) {
			t.Errorf("%s has no fault", r.ID)
		}
	}
}
