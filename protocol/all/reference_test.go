package all_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/profile"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/web"
)

// TestReference compares the pages in docs/reference with the rules. There are two, so that each
// has a length that agents read at once.
func TestReference(t *testing.T) {
	var b, rest strings.Builder
	b.WriteString(`# Check rules

` + "`millrace check`" + ` runs these rules. A finding names the URL, what the site has there (got) and what the rule demands (want).
To fix it, make the sentence of the rule true at that URL. The level is that of RFC 2119: the command fails if a MUST
is broken, and not if a SHOULD is. The section is that of the specification. [More check rules](rules-more.md) has those of the
plain web, of proxies and of the profile agent-ready.
`)
	rest.WriteString("# More check rules\n\nThese continue [Check rules](rules.md).\n")
	for _, p := range all.Protocols() {
		b := &b
		if p.Name == web.Name {
			b = &rest
		}
		rules := p.Rules()
		fmt.Fprintf(b, "\n## %s\n\n%s, version %s", p.Label, p.Title, p.Version)
		if p.Date != "" {
			fmt.Fprintf(b, " of %s", p.Date)
		}
		if p.Source != "" {
			fmt.Fprintf(b, ": <%s>", p.Source)
		}
		fmt.Fprintf(b, ". %d rules.\n\n| rule | level | section | demands |\n|---|---|---|---|\n", len(rules))
		for _, r := range rules {
			id, ok := strings.CutPrefix(r.ID, p.Name+"/")
			if !ok || r.Level == "" || r.Section == "" || r.Sentence == "" {
				t.Errorf("rule %q of %s lacks a part: %+v", r.ID, p.Name, r)
			}
			fmt.Fprintf(b, "| `%s/%s` | %s | %s | %s |\n", p.Name, id, r.Level, r.Section, strings.ReplaceAll(r.Sentence, "|", `\|`))
		}
	}
	for _, s := range []check.Suite{profile.Proxy(), profile.AgentReady()} {
		fmt.Fprintf(&rest, "\n## %s\n\n%d rules.\n\n", s.Label, len(s.Rules))
		if s.Scored {
			rest.WriteString("These run with `--profile " + s.Name + "`. The last part of an ID is the name of the check in isitagentready or AFDocs.\n\n")
		}
		rest.WriteString("| rule | level | demands |\n|---|---|---|\n")
		fixes := make(map[string][]string)
		var order []string
		for _, r := range s.Rules {
			if r.Fix == "" || !strings.HasPrefix(r.ID, s.Name+"/") {
				t.Errorf("rule %q of %s lacks a part: %+v", r.ID, s.Name, r)
			}
			fmt.Fprintf(&rest, "| `%s` | %s | %s |\n", r.ID, r.Level, strings.ReplaceAll(r.Sentence, "|", `\|`))
			if fixes[r.Fix] == nil {
				order = append(order, r.Fix)
			}
			fixes[r.Fix] = append(fixes[r.Fix], "`"+strings.TrimPrefix(r.ID, s.Name+"/")+"`")
		}
		if !s.Scored {
			rest.WriteString("\n")
			for _, fix := range order {
				fmt.Fprintf(&rest, "- %s: %s\n", strings.Join(fixes[fix], ", "), fix)
			}
		}
	}
	for name, text := range map[string]string{"rules.md": b.String(), "rules-more.md": rest.String()} {
		file := filepath.Join("..", "..", "docs", "reference", name)
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(strings.Split(string(page), "\n"), strings.Split(text, "\n")); d != "" {
			t.Errorf("docs/reference/%s is stale; see what changed (-page +code), then: go test ./protocol/all -run Reference -update\n%s", name, d)
		}
	}
}
