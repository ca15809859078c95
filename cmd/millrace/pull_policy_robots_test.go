package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pull follows the usage rules in its group of robots.txt.
func TestPullPolicyRobots(t *testing.T) {
	t.Parallel()
	for robots, refused := range map[string]bool{
		"User-agent: *\nContent-Signal: search=yes, ai-train=no\nDisallow:\n":                                     true,
		"User-agent: *\nContent-Usage: train-ai=n\nDisallow:\n":                                                   true,
		"User-agent: *\nContent-Signal: ai-train=yes\nContent-Usage: /none train-ai=n\nDisallow: /none\n":         false,
		"User-agent: other\nContent-Signal: ai-train=no\nDisallow:\n\nUser-agent: *\nContent-Signal: search=no\n": false,
	} {
		s := newPolicySite(t, 2, http.NotFound)
		s.robots = robots
		file := filepath.Join(t.TempDir(), "m.db")
		r, code := tryPull(t, s.URL, file, "--purpose", "ai-train")
		if (code != exitGood) != refused || (r.Code == "policy-refuses" && strings.Contains(r.Error, s.URL+"/robots.txt")) != refused {
			t.Errorf("%s: exit %d: %s", robots, code, r.Error)
		}
		if paths := s.since(); slices.Contains(paths, "/list") == refused {
			t.Errorf("%s: requested %q", robots, paths)
		}
		if _, code := tryPull(t, s.URL, file, "--purpose", "ai-input"); code != exitGood {
			t.Errorf("%s: for ai-input: exit %d", robots, code)
		}
	}
}
