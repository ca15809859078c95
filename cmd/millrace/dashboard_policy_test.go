package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The forms of the dashboard write the policy and the rules for bots to the configuration file, and
// the server applies them. A value that it rejects changes nothing.
func TestDashboardSavesPolicy(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "millrace.yaml")
	password, err := newPassword()
	if err != nil {
		t.Fatal(err)
	}
	lines := "# ours\ndashboard: /board # here\ndashboard-password: '" + password.Hash + "'\npolicy:\n  purposes:\n    search: true # yes\n"
	write(t, file, lines)
	s := serve(t, dir, "--config", file)
	defer s.ended(t)
	o := newOwner(t, s.url+"board/")
	if !o.logIn(password.Password) {
		t.Fatal("the password is rejected")
	}
	content := func() string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}

	policy := url.Values{"purposes.search": {"allowed"}, "purposes.ai-train": {"refused"}, "requirements.attribution": {"1"}}
	if _, text := o.send("policy", "policy/save", policy); strings.Contains(text, `class="message bad"`) {
		t.Fatal(text)
	}
	want := strings.Replace(lines, "policy:\n  purposes:\n", "policy:\n  requirements:\n    attribution: true\n  purposes:\n    ai-train: false\n", 1)
	if got := content(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	eventually(t, "the new policy is published", func() bool {
		_, h, _ := get(t, s.url+"about/llm.json")
		return strings.Contains(h.Get("Content-Signal"), "ai-train=no")
	})

	o.send("policy", "policy/bots", url.Values{"rule-training": {"403"}})
	if got := content(); got != want+"\nbot:\n  - \"training=403\"\n" {
		t.Error(got)
	}
	eventually(t, "the rule is applied", func() bool {
		code, _, _ := get(t, s.url+"about/llm.json", "User-Agent", "GPTBot/1.2")
		return code == http.StatusForbidden
	})

	was := content()
	for path, form := range map[string]url.Values{
		"policy/save": {"purposes.search": {"allowed"}, "purposes.ai-train": {"refused"}, "requirements.attribution": {"1"}, "terms": {"no URL"}},
		"policy/bots": {"rule-training": {"403"}, "name": {"No such bot"}, "action": {"403"}},
	} {
		if _, text := o.send("policy", path, form); !strings.Contains(text, `class="message bad"`) {
			t.Errorf("%s accepted %v", path, form)
		}
		if got := content(); got != was {
			t.Errorf("%s changed the file:\n%s", path, got)
		}
	}
}

// A check of the dashboard requests the public address. Its requests, and those of a millrace client
// on this machine, are not visits.
func TestDashboardOwnRequests(t *testing.T) {
	t.Parallel()
	password, err := newPassword()
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, copySite(t, "handbook"), "--dashboard", "/board", "--dashboard-password", password.Hash)
	defer s.ended(t)
	eventually(t, "the URL of the dashboard is printed", func() bool { return strings.Contains(s.out.String(), "dashboard "+s.url+"board/\n") })
	o := newOwner(t, s.url+"board/")
	if !o.logIn(password.Password) {
		t.Fatal("the password is rejected")
	}
	get(t, s.url+"llm-pages.json", "User-Agent", "millrace/1.0 (+https://example.com/bot)")
	o.send("protocols", "protocols", url.Values{"protocol": {"tct-01"}}) // a slow machine responds while the check runs
	eventually(t, "the check at the public address has ended", func() bool { _, text := o.page("protocols"); return strings.Contains(text, `data-check="public"`) })
	get(t, s.url+"llm-pages.json", "User-Agent", "GPTBot/1.2")
	eventually(t, "the dashboard shows the machine", func() bool { _, text := o.page(""); return strings.Contains(text, ">GPTBot</a>") })
	if _, text := o.page("traffic?by=bot"); strings.Contains(text, ">other</a>") || strings.Contains(text, ">millrace</a>") {
		t.Errorf("own requests are counted:\n%s", text)
	}
}
