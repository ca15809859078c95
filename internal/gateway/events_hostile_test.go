package gateway

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/bots"
)

// A million user agents result in few bot names.
func TestEventsOfManyNames(t *testing.T) {
	g, eventLog := recorded(t, Options{})
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	found := map[*bots.Bot]bool{}
	for i := range n {
		bot := g.o.Access.Bots.Identify("Name" + strconv.Itoa(i) + "Bot/1.0 (+https://bot.example/)")
		if bot == nil {
			t.Fatalf("user agent %d is not identified as a bot", i)
		}
		found[bot] = true
	}
	if len(found) > 2 {
		t.Errorf("%d bots", len(found))
	}
	// The events contain these names, whatever else the user agent contains.
	names := map[string]bool{}
	for i := range 500 {
		for _, agent := range []string{
			fmt.Sprintf("<script>alert(%d)</script>bot/1.0", i),
			fmt.Sprintf("GPTBot/1.0 \x1b[31m%d\x00\r\n", i),
			fmt.Sprintf("\xff\xfe%dbot spider crawler", i),
			strings.Repeat(fmt.Sprintf("bot%d ", i), 10_000/(i+1)),
		} {
			ask(g, "GET", "/a/llm.json", "User-Agent", agent)
		}
	}
	all := eventLog.last()
	if len(all) < 1500 {
		t.Errorf("%d events", len(all))
	}
	for _, e := range all {
		names[e.Bot+" "+e.Family] = true
	}
	if len(names) > 3 {
		t.Errorf("bots: %v", names)
	}
}

// Every request causes one event of a known kind.
func TestEventsOfHostileRequests(t *testing.T) {
	g, eventLog := recorded(t, Options{})
	for _, text := range []string{
		"<script>alert(1)</script>", "\x00\x1b[2J\r\nX: y", "\xff\xfe", "\u202e\u2028", strings.Repeat("x", 60_000), "'; DROP TABLE page; --", "../../etc/passwd", "%00", "=1+1",
	} {
		for _, target := range []string{"/notes?q=" + url.QueryEscape(text), "/notes?url=" + url.QueryEscape(text), "/" + url.PathEscape(text), "/notes/" + url.PathEscape(text), "/a/?" + url.QueryEscape(text)} {
			w := ask(g, "GET", target, "User-Agent", gptBot, "X-OpenFeeder-Intent", text)
			got := eventLog.last()
			if len(got) != 1 {
				t.Errorf("%.80q: %d events", target, len(got))
				continue
			}
			e := got[0]
			if e.Bot != "GPTBot" || e.Endpoint == "" || e.Protocol == "" || e.Status != w.Code || e.Status >= 500 || e.Path == "" {
				t.Errorf("%.80q: %.300q", target, fmt.Sprintf("%+v", e))
			}
		}
	}
}
