package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/check"
)

// A served site breaks no rule of the profile agent-ready and none for proxies, except those that
// serve cannot follow. The findings are also written as SARIF.
func TestCheckProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := filepath.Join(dir, "millrace.yaml")
	write(t, conf, "policy:\n  purposes: {ai-train: false, search: true}\n")
	s := serve(t, "../../testdata/sites/handbook", "--config", conf)
	file := filepath.Join(dir, "findings.sarif")
	code, out, errs := command(t, nil, "check", s.url, "--allow-private", "--profile", "agent-ready", "--sarif", file, "--json")
	var report check.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("exit %d: %v: %s%s", code, err, out, errs)
	}
	for _, f := range report.Findings {
		if f.Rule != "agent-ready/afdocs/llms-txt-directive-html" { // the owner's template
			t.Errorf("%+v", f)
		}
	}
	if r := report.Protocols["agent-ready"]; r.Score == nil || *r.Score < 95 || r.Should.Pass < 30 {
		t.Errorf("%+v", r)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct{ Results []struct{ RuleID string } }
	}
	if err := json.Unmarshal(b, &log); err != nil || log.Version != check.SARIF || len(log.Runs[0].Results) != len(report.Findings) {
		t.Errorf("%v: %s", err, b)
	}

	_, out, _ = command(t, nil, "check", s.url, "--allow-private", "--json")
	report = check.Report{}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if r := report.Protocols["proxy"]; r == nil || r.Must.Fail+r.Should.Fail+r.NotRun > 0 || r.Must.Pass < 4 {
		t.Errorf("%+v", r)
	}
	if code, _, _ := command(t, nil, "check", s.url, "--profile", "agent-ready", "--protocol", "web"); code != exitUsage {
		t.Errorf("both flags: exit %d", code)
	}
}
