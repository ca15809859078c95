package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Bots receive what the flags and the policy allow.
func TestServeGatekeeper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf, ranges, more := filepath.Join(dir, "millrace.yaml"), filepath.Join(dir, "ranges.json"), filepath.Join(dir, "bots")
	write(t, conf, "proxies: [127.0.0.1]\nbot: [bots=allow, unverified=403, user=1/s, ExampleBot=402]\nbot-ranges: [google="+ranges+", ExampleBot="+ranges+", ChatGPT-User="+ranges+"]\nbots: ["+more+"]\nfiles-rate: 1M\n"+
		"policy: {terms: https://example.com/terms, purposes: {ai-train: false, search: true}}\n")
	write(t, ranges, `{"prefixes": [{"ipv4Prefix": "198.51.100.0/24"}]}`)
	write(t, more, "ExampleBot example search\n")
	s := serve(t, copySite(t, "handbook"), "--config", conf)
	if len(warnings(s.out.String())) != 1 {
		t.Error(s.out.String())
	}
	ask := func(agent, from, path string) (int, string) {
		code, h, body := get(t, s.url+path, "User-Agent", agent, "X-Forwarded-For", from)
		return code, h.Get("Content-Type") + " " + h.Get("RateLimit-Policy") + " " + body
	}
	for _, c := range []struct {
		agent, from, path string
		code              int
		part              string
	}{
		{"Firefox", "203.0.113.1", "about/", 200, "text/html"},
		{"Googlebot/2.1", "198.51.100.1", "about/", 200, "text/html"},
		{"Googlebot/2.1", "203.0.113.1", "about/llm.json", 403, `"reason":"unverified"`},
		{"ExampleBot", "198.51.100.1", "llm-pages.json", 402, "application/problem+json"},
		{"GPTBot/1.2", "203.0.113.1", "about/", 403, `"policy":"https://example.com/terms"`},
		{"ChatGPT-User/1.0", "198.51.100.1", "about/llm.json", 200, `"user";q=2;w=2`},
		{"GPTBot/1.2", "203.0.113.1", "robots.txt", 200, "User-agent: ExampleBot"},
	} {
		if code, text := ask(c.agent, c.from, c.path); code != c.code || !strings.Contains(text, c.part) {
			t.Errorf("%s from %s: %s: %d %s", c.agent, c.from, c.path, code, text)
		}
	}
}

func TestGatekeeperUsage(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, "policy: {purposes: {ai-train: false}, rate: {per-second: 5}}\n")
	for _, c := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"--bot", "training"}, 2, "usage/bot"},
		{[]string{"--bot", "training=404"}, 2, "usage/bot"},
		{[]string{"--bot", "unknown=403"}, 2, "usage/bot"},
		{[]string{"--bot", "GPTBot=allow", "--config", conf}, 2, "usage/bot"},
		{[]string{"--bot", "openai.com=403"}, 2, "usage/bot"},
		{[]string{"--bot-ranges", "GPTBot"}, 2, "usage/bot-ranges"},
		{[]string{"--bot-ranges", "GPTBot=" + conf}, 1, "bad-network"},
		{[]string{"--bots", conf}, 1, "bot-token"},
		{[]string{"--files-rate", "fast"}, 2, "usage/files-rate"},
		{[]string{"--files-rate", "2M", "--files-rate-total", "1M"}, 2, "usage/files-rate-total"},
	} {
		exit, code, out := failure(t, map[string]string{"HOME": t.TempDir()}, append([]string{"serve", dir, "--listen", "127.0.0.1:0"}, c.args...)...)
		if exit != c.exit || code != c.code {
			t.Errorf("%v: %d %s, want %s: %s", c.args, exit, code, c.code, out)
		}
	}
}
