package all_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/protocol/all"
)

// Every protocol has a unique label, from which its name follows.
func TestLabels(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range all.Protocols() {
		if p.Label == "" || seen[p.Label] || strings.ReplaceAll(strings.ToLower(p.Label), " ", "-") != p.Name {
			t.Errorf("%s: label %q", p.Name, p.Label)
		}
		seen[p.Label] = true
	}
}
