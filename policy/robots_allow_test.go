package policy

import (
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// TestRobotsAllow checks which paths the extended robots.txt allows to each crawler.
func TestRobotsAllow(t *testing.T) {
	t.Parallel()
	patterns := []string{"/.well-known/openfeeder.json", "/openfeeder", "/*/llm.json", "/$"}
	training := NewRobots(&millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}}, &RobotsOptions{Crawlers: func(p millrace.Purpose) []string {
		if p == millrace.AITrain {
			return []string{"GPTBot"}
		}
		return nil
	}})
	const entries = "/.well-known/openfeeder.json /openfeeder?page=2 /openfeeder/events /a/llm.json /"
	for _, c := range []struct {
		name, own     string
		u             *Robots
		agent         string
		allow, refuse string
	}{
		{"everything refused", "User-agent: *\nDisallow: /\n", nil, "", entries, "/a/ /secret.json"},
		{"with a comment after it", "User-agent: *\nDisallow: /\n\n# the end", nil, "", entries, "/a/"},
		{"lists of files refused", "User-agent: *\nDisallow: /*.json\nDisallow: /*?\n", nil, "", entries + " /a/", "/b.json /a/?x=1"},
		{"a part refused, too", "User-agent: *\nDisallow: /p/\nDisallow: /\n", nil, "", entries, "/p/llm.json /p/q/llm.json /p/"},
		{"nothing refused", "User-agent: *\nDisallow: /p/\n", nil, "", entries, "/p/llm.json"},
		{"an entry refused by its name", "User-agent: *\nDisallow: /openfeeder-feed\nDisallow: /.well-known/openfeeder.json.bak\n", nil, "", "/openfeeder", "/openfeeder-feed"},
		{"two groups", "User-agent: A\nDisallow: /*.json\n\nUser-agent: *\nDisallow: /\n", nil, "A", entries + " /a/", "/b.json"},
		{"refused by name", "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /\n", nil, "GPTBot", "", entries + " /a/"},
		{"others", "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /\n", nil, "Other", entries, "/a/"},
		{"refused by the policy", "User-agent: *\nDisallow: /\n", training, "GPTBot", "", entries + " /a/"},
		{"refused by --bot", "User-agent: *\nDisallow: /\n", NewRobots(nil, &RobotsOptions{Refused: []string{"BadBot"}}), "BadBot", "", entries},
		{"everybody refused by --bot", "User-agent: *\nDisallow: /\n", NewRobots(nil, &RobotsOptions{Refused: []string{"*"}}), "", "", entries},
		{"not refused by the policy", "User-agent: *\nDisallow: /\n", training, "Other", entries, "/a/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := c.u.Allow(c.u.Write(c.own), patterns)
			robots := fetch.ParseRobots([]byte(text), c.agent)
			for _, path := range strings.Fields(c.allow) {
				if !robots.Allowed(path) {
					t.Errorf("%s is blocked by\n%s", path, text)
				}
			}
			for _, path := range strings.Fields(c.refuse) {
				if robots.Allowed(path) {
					t.Errorf("%s is allowed by\n%s", path, text)
				}
			}
			if again := c.u.Allow(text, patterns); again != text {
				t.Errorf("a second time:\n%s", again)
			}
			for line := range strings.Lines(c.own) {
				if c.u == nil && !strings.Contains(text, strings.TrimSpace(line)) {
					t.Errorf("%q is missing from\n%s", line, text)
				}
			}
		})
	}
}
