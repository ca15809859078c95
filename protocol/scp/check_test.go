package scp

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
)

// checked runs all rules against a handler.
func checked(t *testing.T, h http.Handler, o *check.TargetOptions) (*check.Report, *check.Target) {
	t.Helper()
	if o == nil {
		o = new(check.TargetOptions)
	}
	if o.Decode = fetch.Decode; o.Now == nil {
		o.Now = func() time.Time { return checkedAt }
	}
	target, err := check.NewTarget(goodSite, &http.Client{Transport: handlerTransport{h}}, o)
	if err != nil {
		t.Fatal(err)
	}
	suite := check.Suite{Name: Name, Rules: rules(&OpenOptions{MaxLine: testLine})}
	r, err := check.Run(t.Context(), target, []check.Suite{suite}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, target
}

func explain(t *testing.T, r *check.Report) {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
}

func TestCheckGoodSite(t *testing.T) {
	r, target := checked(t, good().handler(), nil)
	for _, o := range r.Outcomes {
		if o.State != check.Passed {
			t.Errorf("%s: %s %s", o.Rule.ID, o.State, o.Reason)
		}
	}
	if len(r.Findings) > 0 || r.Failed() {
		explain(t, r)
	}
	if n := target.Requests(); n > 40 {
		t.Errorf("%d requests", n)
	}
}

func TestCheckFaults(t *testing.T) {
	for _, f := range checkFaults {
		t.Run(f.rule+" "+f.name, func(t *testing.T) {
			s := good()
			if f.make != nil {
				f.make(s)
			}
			h := s.handler()
			if f.breaks != nil {
				h = f.breaks(h)
			}
			r, _ := checked(t, h, nil)
			var broken []string
			for _, o := range r.Outcomes {
				if o.State == check.NotRun {
					t.Errorf("%s was not run: %s", o.Rule.ID, o.Reason)
				}
				if o.State == check.Failed {
					broken = append(broken, o.Rule.ID)
				}
			}
			if diff := cmp.Diff([]string{Name + "/" + f.rule}, broken); diff != "" {
				t.Error(diff)
				explain(t, r)
			}
		})
	}
}

func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] {
			t.Errorf("two rules are %s", r.ID)
		}
		seen[r.ID] = true
		if !strings.HasPrefix(r.ID, Name+"/") || r.Sentence == "" || r.Section == "" || r.Level != check.Must && r.Level != check.Should {
			t.Errorf("%+v", r)
		}
		if !slices.ContainsFunc(checkFaults, func(f checkFault) bool { return Name+"/"+f.rule == r.ID }) {
			t.Errorf("%s has no fault", r.ID)
		}
	}
}
