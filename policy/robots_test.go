package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// crawlers returns some crawlers for a purpose.
func crawlers(p millrace.Purpose) []string {
	return map[millrace.Purpose][]string{
		millrace.AITrain: {"TrainBot", "Both-Bot"}, millrace.AIInput: {"AnswerBot", "Both-Bot"}, millrace.Search: {"FindBot"},
	}[p]
}

func TestRobots(t *testing.T) {
	noTrain := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false, millrace.Search: true}}
	const says = "Content-Signal: search=yes, ai-train=no\n"
	const refused = "\n# The policy of this site refuses what these crawlers do.\nUser-agent: TrainBot\nUser-agent: Both-Bot\n" + says + "Disallow: /\n"
	for _, c := range []struct {
		name      string
		policy    *millrace.Policy
		own, want string
	}{
		{"no file", noTrain, "", "User-agent: *\n" + says + "Disallow:\n" + refused},
		{
			"each group contains the rules", noTrain,
			"User-agent: FindBot\nUser-agent: Other\nDisallow: /a\n\nUser-agent: *\nAllow: /\n",
			"User-agent: FindBot\nUser-agent: Other\n" + says + "Disallow: /a\n\nUser-agent: *\n" + says + "Allow: /\n" + refused,
		},
		{
			"refused crawlers are removed from other groups", noTrain,
			"User-agent: *\nDisallow: /x\nUser-agent: trainbot/1.0 # mine\nAllow: /\nSitemap: https://x.test/s.xml\nUser-agent: FindBot\nUser-agent: Both-Bot\nAllow: /y\n",
			"User-agent: *\n" + says + "Disallow: /x\n# User-agent: trainbot/1.0 # mine (refused below)\n# Allow: /\nSitemap: https://x.test/s.xml\n" +
				"User-agent: FindBot\n# User-agent: Both-Bot (refused below)\n" + says + "Allow: /y\n" + refused,
		},
		{
			"invalid records are read as crawlers read them", noTrain,
			"User-agent: TrainBot, FindBot\nAllow: /\nUser-agent TrainBot\nAllow: /\nuseragent: both-bot (all)\nAllow: /\nUser-agent: * \nDisallow: /a\n",
			"# User-agent: TrainBot, FindBot (refused below)\n# Allow: /\n# User-agent TrainBot (refused below)\n# Allow: /\n" +
				"# useragent: both-bot (all) (refused below)\n# Allow: /\nUser-agent: * \n" + says + "Disallow: /a\n" + refused,
		},
		{
			"the refusals of a group are kept", noTrain,
			"User-agent: *\nContent-Signal: search=no, ai-input=yes, ai-train=yes\nContent-Usage: bots=n\nContent-Usage: /poems train-ai=y, search=n\nContent-Signal: /essays ai-input=no\nCrawl-delay: 7\nDisallow:\n",
			"User-agent: *\nContent-Signal: search=no, ai-input=yes, ai-train=no\nContent-Usage: search=n, ai-use=y, train-ai=n, bots=n\nCrawl-delay: 7\n" +
				"Content-Usage: /poems search=n, train-ai=n\nContent-Signal: /essays search=yes, ai-input=no, ai-train=no\nDisallow:\n" + refused,
		},
		{
			"an approved consumer", &millrace.Policy{Purposes: noTrain.Purposes, Consumers: []string{"both-bot"}},
			"User-agent: *\r\nDisallow: /a\r\n",
			"User-agent: *\n" + says + "Disallow: /a\n" + strings.Replace(refused, "User-agent: Both-Bot\n", "", 1),
		},
		{
			"a rate", &millrace.Policy{Rate: millrace.RateHints{PerSecond: 0.3}}, "User-agent: a\nDisallow: /a\n",
			"User-agent: a\nCrawl-delay: 4\nDisallow: /a\n\nUser-agent: *\nCrawl-delay: 4\nDisallow:\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := NewRobots(c.policy, &RobotsOptions{Crawlers: crawlers}).Write(c.own)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if again := NewRobots(c.policy, &RobotsOptions{Crawlers: crawlers}).Write(got); again != got && c.policy.Consumers == nil && len(c.policy.Purposes) > 0 {
				// Writing is idempotent, because a site may publish the result as its own file.
				for _, token := range []string{"TrainBot", "Both-Bot", "FindBot", "*"} {
					if a, b := fetch.ParseRobots([]byte(got), token), fetch.ParseRobots([]byte(again), token); a.Allowed("/a") != b.Allowed("/a") {
						t.Errorf("twice governed: %s", again)
					}
				}
			}
		})
	}
	if NewRobots(&millrace.Policy{Terms: "https://x.test/terms"}, &RobotsOptions{Crawlers: crawlers}) != nil || NewRobots(nil, &RobotsOptions{Crawlers: crawlers}) != nil {
		t.Error("a policy without purposes and rates has output")
	}
}

// Each line has an option. A line that a group already has is merged, whatever the option is.
func TestRobotsLines(t *testing.T) {
	t.Parallel()
	p := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AIInput: true, millrace.AITrain: false}}
	const signal, usage = "Content-Signal: ai-input=yes, ai-train=no\n", "Content-Usage: ai-use=y, train-ai=n\n"
	for _, c := range []struct {
		lines     RobotsLines
		own, want string
	}{
		{RobotsLines{}, "", signal},
		{RobotsLines{NoSignal: true}, "", ""},
		{RobotsLines{Usage: true}, "", signal + usage},
		{RobotsLines{NoSignal: true, Usage: true}, "", usage},
		{RobotsLines{NoSignal: true}, "Content-Signal: ai-train=yes\n", signal},
		{RobotsLines{}, "Content-Usage: train-ai=y\n", signal + usage},
	} {
		want := "User-agent: *\n" + c.want + "Disallow:\n"
		if got := NewRobots(p, &RobotsOptions{Lines: c.lines}).Write("User-agent: *\n" + c.own + "Disallow:\n"); got != want {
			t.Errorf("%+v, own %q: %q, want %q", c.lines, c.own, got, want)
		}
	}
}

// Whatever the site's own file contains, crawlers for refused purposes are blocked, and no crawler
// may access more than the site allows.
func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a\n\nUser-agent: TrainBot\nAllow: /\n")
	f.Add("User-agent: FindBot\nCrawl-delay: 5\nUser-agent: TrainBot\nDisallow: /a\n")
	f.Add("Disallow: /\nuser-agent : trainbot\nallow:/a\n\n\nContent-Signal: search=no\nUser-agent: *")
	f.Add("\uFEFFUser-agent: *\r\rDisallow: /a # b\rContent-Usage: /a train-ai=y\n")
	u := NewRobots(&millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}}, &RobotsOptions{Crawlers: crawlers})
	f.Fuzz(func(t *testing.T, own string) {
		if len(own) > 10_000 || strings.ContainsRune(own, 0) {
			return
		}
		got := u.Write(own)
		for _, path := range []string{"/", "/a", "/b?c"} {
			for _, token := range []string{"TrainBot", "Both-Bot"} {
				if fetch.ParseRobots([]byte(got), token).Allowed(path) {
					t.Fatalf("%s may have %s:\n%s", token, path, got)
				}
			}
			for _, token := range []string{"FindBot", "Other"} {
				if fetch.ParseRobots([]byte(got), token).Allowed(path) && !fetch.ParseRobots([]byte(own), token).Allowed(path) {
					t.Fatalf("%s may now access %s:\n%s", token, path, got)
				}
			}
		}
		for line := range strings.Lines(strings.ToLower(got)) {
			content, _, _ := strings.Cut(line, "#")
			name, value, _ := strings.Cut(content, ":")
			if value = strings.TrimSpace(value); strings.HasPrefix(value, "/") {
				_, value, _ = strings.Cut(value, " ") // the rest after the path
			}
			if strings.TrimSpace(name) == "content-usage" && strings.Contains(strings.ReplaceAll(value, " ", ""), "train-ai=y") {
				t.Fatalf("training is allowed: %s", got)
			}
		}
	})
}
