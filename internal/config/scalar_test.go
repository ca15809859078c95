package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// A change of the policy keeps the rest of the file.
func TestSavePolicy(t *testing.T) {
	t.Parallel()
	const ours = `# ours
policy: # the terms
  terms: https://a.test/terms # here
  purposes:
    search: true

    ai-train: false  # never
# the port
listen: 127.0.0.1:0
`
	for name, c := range map[string]struct {
		was    string
		change map[string]any
		want   string
		err    error
	}{
		"no policy": {
			"listen: 127.0.0.1:0",
			map[string]any{"purposes.search": true, "terms": "https://a.test/"},
			"listen: 127.0.0.1:0\npolicy:\n  terms: \"https://a.test/\"\n  purposes:\n    search: true\n", nil,
		},
		"an empty file": {"", map[string]any{"requirements.attribution": true}, "policy:\n  requirements:\n    attribution: true\n", nil},
		"a value": {ours, map[string]any{"purposes.ai-train": true}, `# ours
policy: # the terms
  terms: https://a.test/terms # here
  purposes:
    search: true

    ai-train: true  # never
# the port
listen: 127.0.0.1:0
`, nil},
		"more members": {ours, map[string]any{"purposes.ai-input": true, "requirements.link-back": true}, `# ours
policy: # the terms
  requirements:
    link-back: true
  terms: https://a.test/terms # here
  purposes:
    ai-input: true
    search: true

    ai-train: false  # never
# the port
listen: 127.0.0.1:0
`, nil},
		"removed": {ours, map[string]any{"terms": nil, "purposes.search": nil, "contact": nil}, `# ours
policy: # the terms
  purposes:

    ai-train: false  # never
# the port
listen: 127.0.0.1:0
`, nil},
		"all removed":      {"a: &x\npolicy:\n  purposes:\n    search: true\n"[6:], map[string]any{"purposes.search": nil}, "", nil},
		"unchanged":        {ours, map[string]any{"purposes.search": true, "rate.note": nil}, ours, nil},
		"flow style":       {"policy: {terms: \"https://a.test/\"}\n", map[string]any{"terms": "https://b.test/"}, "", millrace.ErrForbidden},
		"an invalid value": {ours, map[string]any{"terms": "none of\nthis \x00"}, "", millrace.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), FileName)
			write(t, file, c.was)
			err := readConfig(t, file, nil).Save(Changes{Policy: c.change}, func() error { return nil })
			if !errors.Is(err, c.err) || err != nil && c.err == nil {
				t.Fatalf("%v, want %v", err, c.err)
			}
			want := c.want
			if c.err != nil {
				want = c.was
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}
