package all_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/protocol/all"
)

// TestReference compares docs/reference/rules.md with the rules.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Check rules

` + "`millrace check`" + ` runs these rules. A finding names the URL, what the site has there (got) and what the rule demands (want).
To fix it, make the sentence of the rule true at that URL. The level is that of RFC 2119: the command fails if a MUST
is broken, and not if a SHOULD is. The section is that of the specification.
`)
	for _, p := range all.Protocols() {
		rules := p.Rules()
		fmt.Fprintf(&b, "\n## %s\n\n%s, version %s", p.Label, p.Title, p.Version)
		if p.Date != "" {
			fmt.Fprintf(&b, " of %s", p.Date)
		}
		if p.Source != "" {
			fmt.Fprintf(&b, ": <%s>", p.Source)
		}
		fmt.Fprintf(&b, ". %d rules.\n\n| rule | level | section | demands |\n|---|---|---|---|\n", len(rules))
		for _, r := range rules {
			id, ok := strings.CutPrefix(r.ID, p.Name+"/")
			if !ok || r.Level == "" || r.Section == "" || r.Sentence == "" {
				t.Errorf("rule %q of %s lacks a part: %+v", r.ID, p.Name, r)
			}
			fmt.Fprintf(&b, "| `%s/%s` | %s | %s | %s |\n", p.Name, id, r.Level, r.Section, strings.ReplaceAll(r.Sentence, "|", `\|`))
		}
	}
	file := filepath.Join("..", "..", "docs", "reference", "rules.md")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(page), "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Errorf("docs/reference/rules.md is stale; see what changed (-page +code), then: go test ./protocol/all -run Reference -update\n%s", d)
	}
}
