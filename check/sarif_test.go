package check_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/check"
)

// TestSARIF checks that the log has the members that the SARIF 2.1.0 schema requires, and those
// that viewers need: rules with levels and help, and results that refer to the rules.
func TestSARIF(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	rule := func(id string, level check.Level, fix string, f func(fail check.Fail) error) check.Rule {
		return check.Rule{ID: id, Level: level, Section: "1", Sentence: "It <holds>.", Fix: fix, Check: func(_ context.Context, _ *check.Target, fail check.Fail) error { return f(fail) }}
	}
	target, err := check.NewTarget(srv.URL, http.DefaultClient, nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := check.Run(t.Context(), target, []check.Suite{{Name: "a", Scored: true, Rules: []check.Rule{
		rule("a/holds", check.Must, "", func(check.Fail) error { return nil }),
		rule("a/broken", check.Must, "Set it.", func(fail check.Fail) error {
			fail(srv.URL+"/a b", "nothing", "something")
			for range 30 {
				fail(srv.URL, "x", "y")
			}
			return nil
		}),
		rule("a/advice", check.Should, "", func(fail check.Fail) error { fail(":// no URL", "x", "y"); return nil }),
		rule("a/unknown", check.Should, "", func(check.Fail) error { return errors.New("no answer") }),
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Protocols["a"].Score; s == nil || *s != 33 {
		t.Errorf("score %v", s)
	}
	var b bytes.Buffer
	if err := report.WriteSARIF(&b, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	type text struct{ Text string }
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name, Version, InformationURI string
					Rules                         []struct {
						ID                                      string
						ShortDescription, FullDescription, Help text
						DefaultConfiguration                    struct{ Level string }
					}
				}
			}
			Invocations []struct {
				ExecutionSuccessful        *bool
				ToolExecutionNotifications []struct {
					Level          string
					Message        text
					AssociatedRule struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   text
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	driver := run.Tool.Driver
	if len(log.Runs) != 1 || log.Version != "2.1.0" || !strings.HasSuffix(log.Schema, "sarif-schema-2.1.0.json") || driver.Name != "millrace" || driver.Version != "1.2.3" {
		t.Errorf("%s", b.Bytes())
	}
	ids := make(map[string]bool)
	for _, r := range driver.Rules {
		if ids[r.ID] || r.ShortDescription.Text == "" || r.FullDescription.Text == "" || r.Help.Text == "" ||
			r.DefaultConfiguration.Level != "error" && r.DefaultConfiguration.Level != "warning" {
			t.Errorf("rule %+v", r)
		}
		ids[r.ID] = true
	}
	if len(ids) != 4 || len(run.Results) != 22 {
		t.Fatalf("%d rules, %d results", len(ids), len(run.Results))
	}
	for _, r := range run.Results {
		if driver.Rules[r.RuleIndex].ID != r.RuleID || r.Message.Text == "" || r.Level != driver.Rules[r.RuleIndex].DefaultConfiguration.Level || len(r.Locations) != 1 {
			t.Errorf("result %+v", r)
		}
		if u, err := url.Parse(r.Locations[0].PhysicalLocation.ArtifactLocation.URI); err != nil || u.Host == "" || strings.Contains(u.String(), " ") {
			t.Errorf("location %+v", r)
		}
	}
	if m := run.Results[0].Message.Text; m != "got: nothing; want: something; fix: Set it." || run.Results[21].Level != "warning" {
		t.Errorf("message %s", m)
	}
	if i := run.Invocations[0]; i.ExecutionSuccessful == nil || !*i.ExecutionSuccessful || len(i.ToolExecutionNotifications) != 1 ||
		i.ToolExecutionNotifications[0].AssociatedRule.ID != "a/unknown" || i.ToolExecutionNotifications[0].Message.Text != "not run: no answer" {
		t.Errorf("invocation %+v", i)
	}
}
