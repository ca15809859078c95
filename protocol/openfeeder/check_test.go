package openfeeder

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// examined runs all rules against a site.
func examined(t *testing.T, s *stranger) *check.Report {
	t.Helper()
	target, err := check.NewTarget(strange+"/", &http.Client{Transport: s}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return protocoltest.Checked(t, Name, Rules(), target)
}

func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] {
			t.Errorf("two rules have the ID %s", r.ID)
		}
		seen[r.ID] = true
		if !strings.HasPrefix(r.ID, Name+"/"+r.Section+"/") || r.Sentence == "" || r.Level != check.Must && r.Level != check.Should {
			t.Errorf("%+v", r)
		}
	}
}

// Every section named by a rule is a heading of the specification.
func TestRuleSections(t *testing.T) {
	dir := testkit.Data(t, "MILLRACE_TEST_SPECS")
	text, err := os.ReadFile(filepath.Join(dir, "openfeeder-1.0.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rules() {
		if !regexp.MustCompile(`(?m)^#+ ` + regexp.QuoteMeta(r.Section) + `\.? `).Match(text) {
			t.Errorf("%s: the specification has no section %s", r.ID, r.Section)
		}
	}
}

// A site without the protocol has no findings.
func TestCheckAbsent(t *testing.T) {
	for name, s := range map[string]*stranger{
		"nothing":          {answers: map[string]string{"/": "<p>"}},
		"closed":           {answers: map[string]string{"/": "<p>", discovery: "401 x"}},
		"a page for all":   {answers: map[string]string{"/": "<p>", discovery: "<p>"}, header: map[string]http.Header{discovery: {"Content-Type": {"text/html"}}}},
		"another document": {answers: map[string]string{"/": "<p>", discovery: `{"links":[]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := examined(t, s).Protocols[Name]; got.Found || got.NotRun != len(Rules()) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Rules about features that a static feed cannot have do not apply to it.
func TestCheckStatic(t *testing.T) {
	r := examined(t, &stranger{answers: map[string]string{
		"/": "<p>", discovery: strings.Replace(discoveryOf(`{"endpoint":"/i.json","type":"static"}`), `,"contact":null`, "", 1),
		"/i.json": strings.ReplaceAll(list(1, 1, "/a"), `"summary"`, `"document":"/a.json","summary"`),
		"/a.json": strings.NewReplacer(`"updated"`, `"author":null,"summary":"","published":null,"updated"`, `}}`, `,"cached":false,"cache_age_seconds":null}}`).
			Replace(chunked("/a", "2026-01-01T00:00:00Z", 20, 0, 20)),
	}})
	for _, f := range r.Findings {
		t.Errorf("%+v", f)
	}
	if got := r.Protocols[Name]; !got.Found || got.Must.Pass < 30 || got.NotRun > 0 {
		t.Errorf("%+v", got)
	}
}

// No response of a site makes a rule panic.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{list(1, 2, "/a"), chunked("/a", "2026-01-01T00:00:00Z", 3, 0, 1), reply("x", `},"deleted":[null,{}]`), `{"items":[{"url":1}],"sync":{}}`} {
		f.Add(discoveryOf(usual), s)
	}
	f.Fuzz(func(t *testing.T, about, answer string) {
		for _, o := range examined(t, &stranger{answers: map[string]string{"/": "", discovery: about, "/openfeeder": answer}}).Outcomes {
			if errors.Is(o.Err, check.ErrPanic) {
				t.Errorf("%s: %s", o.Rule.ID, o.Reason)
			}
		}
	})
}
