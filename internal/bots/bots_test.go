package bots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

func logTo(b *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func table(t testing.TB, o *Options) *Table {
	t.Helper()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sent lists user agents as clients send them, with the expected bot.
var sent = []struct{ agent, bot string }{
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", "GPTBot"},
	{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36; compatible; OAI-SearchBot/1.3; +https://openai.com/searchbot", "OAI-SearchBot"},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot", "ChatGPT-User"},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", "ClaudeBot"},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Claude-User/1.0; +Claude-User@anthropic.com)", "Claude-User"},
	{"Googlebot/2.1 (+http://www.google.com/bot.html)", "Googlebot"},
	{"Googlebot-Image/1.0", "Googlebot-Image"},
	{"FeedFetcher-Google; (+http://www.google.com/feedfetcher.html)", "FeedFetcher-Google"},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)", "PerplexityBot"},
	{"CCBot/2.0 (https://commoncrawl.org/faq/)", "CCBot"},
	{"cohere-ai", "cohere-ai"},
	{"meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)", "meta-externalagent"},
	{"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "facebookexternalhit"},
	{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_10_1) AppleWebKit/600.2.5 (KHTML, like Gecko) Version/8.0.2 Safari/600.2.5 (Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot)", "Amazonbot"},
	{"Mozilla/5.0 (compatible; YouBot/1.0; +https://about.you.com/youbot/)", "YouBot"},
	{"Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)", "Bytespider"},
	{"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", "bingbot"},
	{"gptbot", "GPTBot"},
	{"a GPTBot.", "GPTBot"},

	{"Mozilla/5.0 (compatible; Mybot/1.0)", "other"},
	{"NewCrawler", "other"},
	{"millrace/1.0 (+https://example.com/about)", "other"},
	{"Thing/2 (see https://example.com/GPTBot; bot-admin@example.com)", "other"},
	{"Google-Extended", ""}, // only for robots.txt
	{"Mozilla/5.0 (compatible; Applebot-Extended)", "other"},
	{"NotGPTBotAtAll", ""},
	{"Mozilla/5.0 (compatible; Baiduspider-render/2.0; +http://www.baidu.com/search/spider.html)", "Baiduspider-render"},
	{"DuckDuckBot-Https/1.1; (+https://duckduckgo.com/duckduckbot)", "DuckDuckBot-Https"},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; MistralAI-Index/1.0; +https://docs.mistral.ai/robots)", "MistralAI-Index"},

	// A name after "like" does not identify the bot.
	{"feedly/1.0 (+http://www.feedly.com/fetcher.html; 12 subscribers; like FeedFetcher-Google)", "other"},
	{"Mozilla/5.0 (Macintosh) Safari/601.2.4 (like Googlebot)", ""},
	{"likely GPTBot", "GPTBot"},

	// Names of phones.
	{"Mozilla/5.0 (Linux; Android 10; CUBOT_NOTE_20 Build/QP1A) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36", ""},
	{"UCWEB/2.0 (MIDP-2.0; U; Adr 4.4.2; en-US; CUBOT-X9) U2/1.0.0 UCBrowser/10.0.0 Mobile", ""},
	{"Mozilla/5.0 (Linux; arm_64; Android 12; Robot 2 Spider) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36", ""},
	{"Dalvik/2.1.0 (Linux; U; Android 9; SPIDER_9 Build/PPR1)", ""},
	{"Mozilla/5.0 (Linux; Android 9; SPIDER_9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36 (compatible; Somebot/1)", "other"},
	{"Mozilla/5.0 (Linux; Android 9; compatible; Somebot/1)", "other"},

	{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36", ""},
	{"Mozilla/5.0 (Linux; Android 9; CUBOT NOTE 20) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36", ""},
	{"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", ""},
	{"see gptbot.com/GPTBot or x@GPTBot", ""},
	{"curl/8.5.0", ""},
	{"", ""},
}

func TestIdentify(t *testing.T) {
	b := table(t, nil)
	for _, c := range append(sent, sent...) { // twice, because results are cached
		got := ""
		if is := b.Identify(c.agent); is != nil {
			got = is.Token
			if is == Other {
				got = is.Name
			}
		}
		if got != c.bot {
			t.Errorf("%q: %q, want %q", c.agent, got, c.bot)
		}
	}
	if b.Identify(strings.Repeat("x ", 4000)+"GPTBot") != nil {
		t.Error("a long user agent is read to its end")
	}
	for _, c := range sent {
		if n := testing.AllocsPerRun(10, func() { b.Identify(c.agent) }); n != 0 {
			t.Errorf("%q again: %v allocations", c.agent, n)
		}
	}
}

// The table has the families that OpenFeeder names in section 12, with the purposes of their
// bots.
func TestFamilies(t *testing.T) {
	b := table(t, nil)
	for _, family := range []string{"openai", "anthropic", "google", "perplexity", "common-crawl", "cohere", "meta", "amazon", "you", "bytedance"} {
		if len(b.Named(family)) == 0 {
			t.Errorf("%s: no bot", family)
		}
	}
	if got := b.Crawlers(millrace.AITrain); !slices.Contains(got, "Google-Extended") || !slices.Contains(got, "GPTBot") || slices.Contains(got, "Googlebot") {
		t.Error(got)
	}
	if a := b.Agent("ChatGPT.com"); a == nil || a.Family != "openai" {
		t.Error(a)
	}
	for name, want := range map[string]int{"gptbot": 1, "OPENAI": 4, "unknown": 0, "Other": 0} {
		if got := len(b.Named(name)); got != want {
			t.Errorf("%s: %d bots", name, got)
		}
	}
	if got := b.Crawlers(millrace.AIInput); !slices.Contains(got, "ChatGPT-User") || slices.Contains(got, "facebookexternalhit") {
		t.Error(got)
	}
	if len(b.Named("training")) < 10 {
		t.Error("too few bots for training")
	}
}

func TestRead(t *testing.T) {
	all, err := Read(strings.NewReader("\n# ours\nOurBot\tus\tuser agents=a.example,b.example:8443 name=Our-Bot # indeed\n  Their-Robots them search robots-only people ranges=https://them.example/r.json\n"))
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if b := all[0]; b.Token != "OurBot" || b.Name != "Our-Bot" || b.Family != "us" || b.Purpose != User || len(b.Agents) != 2 || b.RobotsOnly {
		t.Errorf("%+v", b)
	}
	if b := all[1]; !b.RobotsOnly || !b.People || b.Of() != "" || all[0].Of() != millrace.AIInput || b.Ranges != "https://them.example/r.json" {
		t.Errorf("%+v", b)
	}
	for text, want := range map[string]string{
		"A\n":                                   "bot-line",
		"A b training\na c user\n":              "bot-duplicate",
		"# x\nA b crawling\n":                   "bot-purpose",
		"A/1 b user\n":                          "bot-token",
		"A b user name=\n":                      "bot-field",
		"A b user color=red\n":                  "bot-field",
		"A b user name=bots\n":                  "bot-reserved",
		"training b user\n":                     "bot-reserved",
		"A b user agents=x/y\n":                 "bad-host",
		"A b user ranges=http://x.example\n":    "bad-scheme",
		strings.Repeat("A", 49) + " b user\n":   "bot-token",
		"A b user " + strings.Repeat("x", 5000): "line-size",
	} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != want {
			t.Errorf("%.30q: %v: code %q, want %q", text, err, millrace.ErrorCode(err), want)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	more := write(t, dir, "bots", "OurBot us user\ngptbot openai search\n")
	b := table(t, &Options{Files: []string{more}})
	if got := b.Identify("GPTBot/1"); got == nil || got.Purpose != Search || got.Token != "gptbot" {
		t.Errorf("%+v", got)
	}
	if got := b.Identify("OurBot/1"); got == nil || got.Family != "us" {
		t.Errorf("%+v", got)
	}
	missing := filepath.Join(dir, "none")
	for _, tt := range []struct {
		o    *Options
		want string
	}{
		{&Options{Files: []string{write(t, dir, "bots", "x\n")}}, "bot-line"},
		{&Options{Files: []string{missing}}, "file-not-found"},
		{&Options{Ranges: []RangeFile{{"unknown", more}}}, "unknown-bot"},
		{&Options{Ranges: []RangeFile{{"GPTBot", missing}}}, "file-not-found"},
		{&Options{Ranges: []RangeFile{{"GPTBot", write(t, dir, "ranges", "192.0.2.0/24\n192.0.2\n")}}}, "bad-network"},
	} {
		if _, err := New(tt.o); millrace.ErrorCode(err) != tt.want {
			t.Errorf("%v: code %q, want %q", err, millrace.ErrorCode(err), tt.want)
		}
	}
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ReadRanges reads all forms in which operators publish addresses.
func TestReadRanges(t *testing.T) {
	for text, want := range map[string]string{
		`{"creationTime":"2026-10-05T12:00:00.000000","prefixes":[{"ipv4Prefix":"192.0.2.0/28"},{"ipv6Prefix":"2001:db8:10::/64"}]}`: "[192.0.2.0/28 2001:db8:10::/64]",
		"\uFEFF{\"prefixes\":[{\"ipv4Prefix\":\"192.0.2.7\"}]}":                                                                      "[192.0.2.7/32]",
		`{"prefixes":[{"ip_prefix":"192.0.2.7"},{"ip_prefix":"2001:db8::/32"}]}`:                                                     "[192.0.2.7/32 2001:db8::/32]",
		"# from the manual\n192.0.2.0/24\r\n\n2001:db8::1 # one\n":                                                                   "[192.0.2.0/24 2001:db8::1/128]",
		"192.0.2.9/24,US,US-CA,Menlo Park,\n2001:db8::/32,IE,,,\n":                                                                   "[192.0.2.0/24 2001:db8::/32]",
	} {
		got, err := ReadRanges(strings.NewReader(text))
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                                     "no-address",
		"# none\n":                             "no-address",
		`{"prefixes":[]}`:                      "no-address",
		`{"prefixes":[{"prefix":"10.0.0.0"}]}`: "range-field",
		`{"prefixes":[{"ipv4Prefix":"10.0.0.0/8"},{"ipv4Prefix":"ten"}]}`: "bad-network",
		`{"prefixes":`:                      "json-truncated",
		"192.0.2.0/24\n0.0.0.0/0\n":         "every-address",
		"::/0":                              "every-address",
		"192.0.2.1\n192.0.2.2, 192.0.2.3\n": "range-line",
		"::ffff:10.0.0.0/104":               "mapped-network",
		"fe80::1%eth0":                      "bad-network",
		"<html>":                            "bad-network",
	} {
		if _, err := ReadRanges(strings.NewReader(text)); !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != want {
			t.Errorf("%q: %v: code %q, want %q", text, err, millrace.ErrorCode(err), want)
		}
	}
}

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	b := table(t, &Options{Ranges: []RangeFile{
		{"gptbot", write(t, dir, "a", "192.0.2.0/28\n192.0.2.8/29\n198.51.100.7\n2001:db8::/32\n")},
		{"google", write(t, dir, "b", "203.0.113.0/25\n")},
		{"google", write(t, dir, "c", "203.0.113.128/25\n")},
	}})
	for _, c := range []struct {
		agent, from string
		want        Identity
	}{
		{"GPTBot", "192.0.2.0", Verified},
		{"GPTBot", "192.0.2.15", Verified},
		{"GPTBot", "::ffff:192.0.2.15", Verified},
		{"GPTBot", "192.0.2.16", Forged},
		{"GPTBot", "198.51.100.6", Forged},
		{"GPTBot", "198.51.100.7", Verified},
		{"GPTBot", "2001:db8:ffff::1", Verified},
		{"GPTBot", "2001:db7::1", Forged},
		{"GPTBot", "::1", Forged},
		{"Googlebot", "203.0.113.200", Verified},
		{"Google-Agent", "203.0.113.20", Verified},
		{"Googlebot", "192.0.2.1", Forged},
		{"ClaudeBot", "192.0.2.1", Unknown},
		{"SomeBot", "192.0.2.1", Unknown},
	} {
		if got := b.Verify(b.Identify(c.agent), netip.MustParseAddr(c.from)); got != c.want {
			t.Errorf("%s from %s: %v, want %v", c.agent, c.from, got, c.want)
		}
	}
	if !b.Located(b.Identify("Googlebot")) || b.Located(b.Identify("ClaudeBot")) {
		t.Error("bots with known addresses")
	}
	if b.Verify(nil, netip.Addr{}) != Unknown || b.Verify(b.Identify("GPTBot"), netip.Addr{}) != Forged {
		t.Error("the result is not Unknown without a bot, or not Forged without an address")
	}
	bot, from := b.Identify("GPTBot"), netip.MustParseAddr("192.0.2.3")
	if n := testing.AllocsPerRun(100, func() { b.Verify(bot, from) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A file is read again when it changes. An invalid file changes nothing.
func TestReread(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "a", "192.0.2.0/24\n")
	var log strings.Builder
	b := table(t, &Options{Ranges: []RangeFile{{"GPTBot", file}}, Logger: logTo(&log)})
	lost := make(map[string]bool)
	at := time.Now()
	change := func(text string) {
		t.Helper()
		write(t, dir, "a", text)
		at = at.Add(time.Second)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		b.reload(lost)
		b.reload(lost)
	}
	from := func(address string) Identity {
		return b.Verify(b.Identify("GPTBot"), netip.MustParseAddr(address))
	}
	change("198.51.100.0/24\n")
	if from("192.0.2.1") != Forged || from("198.51.100.1") != Verified {
		t.Error("the new addresses are not used")
	}
	change("nonsense\n")
	if from("198.51.100.1") != Verified || strings.Count(log.String(), "level=WARN") != 1 {
		t.Error(log.String())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	b.reload(lost)
	b.reload(lost)
	if from("198.51.100.1") != Verified || strings.Count(log.String(), "level=WARN") != 2 {
		t.Error(log.String())
	}
	change("203.0.113.0/24\n")
	if from("203.0.113.1") != Verified || from("198.51.100.1") != Forged {
		t.Error("the newest addresses are not used")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Run(ctx) // Run returns, because the context has ended
}

// The ranges of a file contain an address if one of its networks does, even if networks
// overlap.
func FuzzReadRanges(f *testing.F) {
	f.Add("192.0.2.0/24\n192.0.2.128/25\n10.0.0.0/8\n", "192.0.2.200")
	f.Add(`{"prefixes":[{"ipv4Prefix":"192.0.2.0/28"},{"ipv6Prefix":"2001:db8:10::/64"}]}`, "2001:db8:10::1")
	f.Add("1.0.0.0/8\n1.2.0.0/16\n2.0.0.0/7\n", "2.255.0.1")
	f.Fuzz(func(t *testing.T, text, from string) {
		networks, err := ReadRanges(strings.NewReader(text))
		if err != nil {
			return
		}
		a, err := netip.ParseAddr(from)
		if err != nil || a.Zone() != "" {
			a = networks[0].Addr()
		}
		want := slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
		if got := newSpans(networks).contain(a); got != want {
			t.Errorf("%v in %v: %v", a, networks, got)
		}
	})
}

func FuzzIdentify(f *testing.F) {
	for _, c := range sent {
		f.Add(c.agent)
	}
	b := table(f, nil)
	f.Fuzz(func(t *testing.T, agent string) {
		is := b.Identify(agent)
		if is != nil && is != Other && !strings.Contains(strings.ToLower(agent), strings.ToLower(is.Token)) {
			t.Errorf("%q is %s", agent, is.Token)
		}
		if is != nil && is.RobotsOnly {
			t.Errorf("%q is %s, want no bot", agent, is.Token)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add("OurBot us user agents=a.example name=Our-Bot\n")
	f.Add(builtIn)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Read(strings.NewReader(text))
		for _, b := range all {
			if err != nil || b.Token == "" || b.Family == "" || b.Purpose.Of() == "" {
				t.Errorf("%+v, %v", b, err)
			}
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	known := table(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range sent {
			known.Identify(c.agent)
		}
	}
}
