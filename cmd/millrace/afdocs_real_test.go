package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/testkit"
)

// afdocsVersion is the version of the npm package that the test installs. It implements
// version 0.6 of the Agent-Friendly Documentation Spec.
const afdocsVersion = "0.22.2"

// TestRealAFDocs runs afdocs on two sites that serve publishes. Only the owner of the site can fix
// the findings; see docs/guides/check-a-site.md.
func TestRealAFDocs(t *testing.T) {
	t.Parallel()
	npm, node := testkit.Real(t, "npm"), testkit.Real(t, "node")
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "afdocs@"+afdocsVersion)
	if out, err := install.CombinedOutput(); err != nil {
		t.Logf("%s", out)
		testkit.Missing(t, "the npm package afdocs")
	}
	docs := filepath.Join(dir, "docs")
	build := exec.CommandContext(t.Context(), "go", "run", "./docs/site", "--out", docs)
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		site string
		want map[string]string // status by check
	}{
		{"../../testdata/sites/handbook", map[string]string{
			"llms-txt-directive-html": "fail", // the template of the site has no link to llms.txt
			"content-start-position":  "warn", // the pages begin with a menu
			"markdown-content-parity": "warn", // the Markdown has no marks of footnotes
		}},
		{docs, map[string]string{}},
	} {
		s := serve(t, c.site)
		check := exec.CommandContext(t.Context(), node, filepath.Join(dir, "node_modules/afdocs/bin/afdocs.mjs"), "check", s.url,
			"--format", "json", "--sampling", "deterministic", "--request-delay", "0", "--quiet")
		out, _ := check.Output() // findings cause an exit code
		var report struct {
			Results []struct{ ID, Status, Message string }
		}
		if err := json.Unmarshal(out, &report); err != nil || len(report.Results) != 28 {
			t.Fatalf("%v: %d results: %s", err, len(report.Results), out)
		}
		got := make(map[string]string)
		for _, r := range report.Results {
			if r.Status != "pass" && r.Status != "skip" {
				got[r.ID] = r.Status
				t.Logf("%s: %s: %s", c.site, r.ID, r.Message)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.site, d)
		}
	}
}
