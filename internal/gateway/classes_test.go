package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/edition"
)

// known returns the built-in table with the addresses of some bots.
func known(t testing.TB) *bots.Table {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ranges")
	if err := os.WriteFile(file, []byte("198.51.100.0/24\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := bots.New(&bots.Options{Ranges: []bots.RangeFile{{Name: "GPTBot", File: file}, {Name: "google", File: file}}})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func rules(t testing.TB, list ...string) []access.Rule {
	t.Helper()
	var out []access.Rule
	for _, s := range list {
		r, err := access.ParseRule(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// signers treats the Signature field of a request as the name of its verified signer.
type signers struct{ asked int }

func (s *signers) Verify(_ context.Context, r *http.Request) (string, error) {
	s.asked++
	switch agent := r.Header.Get("Signature"); agent {
	case "wrong":
		return "", fmt.Errorf("%w: signature", millrace.ErrInvalid)
	case "away":
		return "", fmt.Errorf("%w: keys", millrace.ErrUnavailable)
	default:
		return agent, nil
	}
}

// visitor returns a function that sends a request to a gateway with o, from an address, with a
// user agent and more fields.
func visitor(t *testing.T, o Options) func(from, agent, target string, fields ...string) *httptest.ResponseRecorder {
	t.Helper()
	if o.Access.Bots == nil {
		o.Access.Bots = known(t)
	}
	o.Access.Now = func() time.Time { return past }
	g := setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}, o: o}.gateway(t)
	return func(from, agent, target string, fields ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.RemoteAddr = from + ":1"
		r.Header.Set("User-Agent", agent)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Add(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
}

const (
	theirs  = "198.51.100.9" // an address of GPTBot and Google
	nowhere = "203.0.113.9"
	browser = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
)

func TestClasses(t *testing.T) {
	agents, table := new(signers), known(t)
	for _, c := range []struct {
		rules  []string
		from   string
		agent  string
		signed string
		want   int
	}{
		{[]string{"training=403"}, nowhere, "ClaudeBot/1.0", "", 403},
		{[]string{"training=403"}, nowhere, "Claude-User/1.0", "", 200},
		{[]string{"training=403"}, nowhere, browser, "", 200},
		{[]string{"training=402"}, nowhere, "CCBot/2.0", "", 402},
		// The most specific rule applies, in any order.
		{[]string{"ClaudeBot=allow", "training=403", "bots=402"}, nowhere, "ClaudeBot/1.0", "", 200},
		{[]string{"anthropic=402", "training=403"}, nowhere, "ClaudeBot/1.0", "", 402},
		{[]string{"training=402", "anthropic=allow"}, nowhere, "ClaudeBot/1.0", "", 200},
		{[]string{"training=allow", "bots=403"}, nowhere, "ClaudeBot/1.0", "", 200},
		{[]string{"bots=403"}, nowhere, "ClaudeBot/1.0", "", 403},
		{[]string{"bots=403"}, nowhere, "NobodyKnowsThisBot/1.0", "", 403},
		{[]string{"bots=403"}, nowhere, browser, "", 200},
		// A name is accepted if the table has no addresses for it.
		{[]string{"ClaudeBot=allow", "bots=403"}, nowhere, "ClaudeBot/1.0", "", 200},
		{[]string{"GPTBot=allow", "bots=403"}, nowhere, "GPTBot/1.0", "", 403},
		{[]string{"GPTBot=allow", "bots=403"}, theirs, "GPTBot/1.0", "", 200},
		{[]string{"GPTBot=403"}, nowhere, "GPTBot/1.0", "", 403},
		{[]string{"GPTBot=403", "bots=allow"}, nowhere, "GPTBot/1.0", "", 403},
		{[]string{"unverified=403"}, nowhere, "GPTBot/1.0", "", 403},
		{[]string{"unverified=403"}, theirs, "GPTBot/1.0", "", 200},
		{[]string{"unverified=403"}, nowhere, "ClaudeBot/1.0", "", 403},
		{[]string{"unverified=402", "ClaudeBot=403"}, nowhere, "ClaudeBot/1.0", "", 403},
		{[]string{"unverified=403", "ClaudeBot=allow"}, nowhere, "ClaudeBot/1.0", "", 403},
		{[]string{"unverified=403"}, nowhere, browser, "", 200},
		// Signatures.
		{[]string{"unverified=403"}, nowhere, "ChatGPT-User/1.0", "chatgpt.com", 200},
		{[]string{"unverified=403"}, nowhere, "GPTBot/1.0", "chatgpt.com", 200}, // the same family
		{[]string{"user=403"}, nowhere, browser, "chatgpt.com", 403},
		{[]string{"unverified=403"}, nowhere, browser, "agents.example", 200},
		{[]string{"bots=403"}, nowhere, browser, "agents.example", 403},
		{[]string{"bots=403", "agents.example=allow"}, nowhere, browser, "agents.example", 200},
		{[]string{"GPTBot=403", "agents.example=allow"}, theirs, "GPTBot/1.0", "agents.example", 403},
		{[]string{"unverified=403"}, theirs, "GPTBot/1.0", "agents.example", 403},
		{[]string{"unverified=403"}, theirs, "GPTBot/1.0", "wrong", 403},
		{[]string{"bots=402"}, nowhere, browser, "wrong", 402},
		{[]string{"unverified=403"}, theirs, "GPTBot/1.0", "away", 200},
		{[]string{"unverified=403"}, nowhere, browser, "away", 200},
	} {
		agents.asked = 0
		ask := visitor(t, Options{Access: access.Options{Bots: table, Agents: agents, Rules: rules(t, c.rules...)}})
		var fields []string
		if c.signed != "" {
			fields = []string{"Signature", c.signed}
		}
		for _, target := range []string{"/a/llm.json", "/a/", "/style.css", "/no", "/notes", "/notes/all"} {
			w := ask(c.from, c.agent, target, fields...)
			want := c.want
			if want == 200 && target == "/no" {
				want = 404
			}
			if w.Code != want {
				t.Errorf("%v: %s from %s, signed %q: %s: %d, want %d", c.rules, c.agent, c.from, c.signed, target, w.Code, want)
			}
		}
		if c.signed == "" && agents.asked > 0 {
			t.Errorf("%v: requests without a signature are verified", c.rules)
		}
		// The documents with the terms are public.
		for _, target := range []string{"/robots.txt", "/healthz", "/readyz", "/license.xml", "/.well-known/arc-policy.json", "/llm-policy.json"} {
			if w := ask(c.from, c.agent, target, fields...); w.Code == 403 || w.Code == 402 {
				t.Errorf("%s: %d", target, w.Code)
			}
		}
	}
}

// A refusal states its reason in a machine-readable form.
func TestRefusal(t *testing.T) {
	p := &millrace.Policy{Terms: "https://x.test/terms", Payment: "https://x.test/pay", Contact: "mailto:a@x.test"}
	ask := visitor(t, Options{Access: access.Options{Rules: rules(t, "training=402", "unverified=403")}, Policy: p})
	w := ask(nowhere, "CCBot/2.0", "/a/llm.json")
	if w.Code != 403 {
		t.Fatal(w.Code)
	}
	w = visitor(t, Options{Access: access.Options{Rules: rules(t, "training=402")}, Policy: p})(nowhere, "CCBot/2.0", "/a/llm.json")
	var got struct {
		Title, Detail, Reason, Bot, Purpose, Policy, Payment, Contact string
		Status                                                        int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err, w.Body)
	}
	h := w.Header()
	if got.Status != 402 || w.Code != 402 || got.Title != "Payment Required" || got.Reason != "training" || got.Bot != "CCBot" || got.Purpose != "ai-train" ||
		got.Policy != p.Terms || got.Payment != p.Payment || got.Contact != p.Contact || got.Detail == "" {
		t.Errorf("%+v", got)
	}
	if h.Get("Content-Type") != "application/problem+json" || h.Get("Cache-Control") != "no-store" || strings.Join(h["Link"], ", ") !=
		`<https://x.test/terms>; rel="terms-of-service", <https://x.test/pay>; rel="payment"` {
		t.Errorf("%v", h)
	}
}

// An address that the client itself sends is ignored.
func TestForgedAddress(t *testing.T) {
	o := Options{Access: access.Options{Rules: rules(t, "bots=403", "GPTBot=allow")}}
	for name, c := range map[string]struct {
		proxies []netip.Prefix
		from    string
		want    int
	}{
		"no trusted proxy":             {nil, nowhere, 403},
		"not a trusted proxy":          {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, nowhere, 403},
		"address from a trusted proxy": {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "10.1.1.1", 200},
	} {
		o.Access.Proxies = c.proxies
		w := visitor(t, o)(c.from, "GPTBot/1.2", "/a/", "X-Forwarded-For", theirs, "Forwarded", "for="+theirs, "X-Real-IP", theirs)
		if w.Code != c.want {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	o.Access.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	if w := visitor(t, o)("10.1.1.1", "GPTBot/1.2", "/a/", "X-Forwarded-For", theirs+", "+nowhere); w.Code != 403 {
		t.Errorf("an address that the client itself sent: %d", w.Code)
	}
}

// A rule cannot allow a purpose that the policy refuses.
func TestPolicyRefuses(t *testing.T) {
	p := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false, millrace.Search: true}, Consumers: []string{"ccbot"}}
	ask := visitor(t, Options{Policy: p, Access: access.Options{Rules: rules(t, "ClaudeBot=402", "CCBot=allow", "search=2/s")}})
	for agent, want := range map[string]int{"GPTBot": 403, "ClaudeBot": 402, "CCBot": 200, "Googlebot": 200, "Claude-User": 200, "SomeBot": 200, browser: 200} {
		if w := ask(nowhere, agent, "/a/"); w.Code != want {
			t.Errorf("%s: %d, want %d", agent, w.Code, want)
		}
	}
	p.Payment = "https://x.test/pay"
	if w := visitor(t, Options{Policy: p})(nowhere, "GPTBot", "/a/"); w.Code != 402 {
		t.Errorf("with a price: %d", w.Code)
	}
	// A preview for people is not AI input unless a rule refuses the bot.
	p = &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AIInput: false}}
	ask = visitor(t, Options{Policy: p, Access: access.Options{Rules: rules(t, "facebookcatalog=403")}})
	for agent, want := range map[string]int{"ChatGPT-User": 403, "facebookexternalhit/1.1": 200, "FeedFetcher-Google": 200, "facebookcatalog/1.0": 403, "GPTBot": 200} {
		if w := ask(theirs, agent, "/a/"); w.Code != want {
			t.Errorf("%s: %d, want %d", agent, w.Code, want)
		}
	}
	p = &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}}
	for _, c := range []struct {
		rule string
		want string
	}{
		{"GPTBot=allow", "policy-refuses"},
		{"training=2/s", "policy-refuses"},
		{"openai=allow", "policy-refuses"},
		{"NoSuchBot=403", "unknown-bot"},
		{"Google-Extended=403", "robots-only"},
	} {
		if _, err := New(nil, &Options{Policy: p, Access: access.Options{Bots: known(t), Rules: rules(t, c.rule)}}); !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != c.want {
			t.Errorf("%s: %v: code %q, want %q", c.rule, err, millrace.ErrorCode(err), c.want)
		}
	}
	if _, err := New(nil, &Options{Access: access.Options{Bots: known(t), Rules: rules(t, "GPTBot=403", "gptbot=402")}}); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
}

// robots.txt lists the bots that are refused.
func TestRobotsOfClasses(t *testing.T) {
	for _, p := range []*millrace.Policy{nil, {Purposes: map[millrace.Purpose]bool{millrace.Search: false}, Consumers: []string{"Googlebot"}}} {
		text := visitor(t, Options{Policy: p, Access: access.Options{Rules: rules(t, "training=402", "ClaudeBot=1/s", "YouBot=403")}})(nowhere, "GPTBot", "/robots.txt").Body.String()
		for token, want := range map[string]bool{
			"GPTBot": true, "Google-Extended": true, "YouBot": true, "ClaudeBot": false, "Claude-User": false, "Googlebot": false, "PerplexityBot": p != nil,
		} {
			if got := strings.Count(text, "User-agent: "+token+"\n"); got > 1 || (got == 1) != want {
				t.Errorf("%s: %d times in\n%s", token, got, text)
			}
		}
		if !strings.Contains(text, "Disallow: /\n") {
			t.Error(text)
		}
	}
}

// A bot has one rate for all its addresses. Requests that forge its name have their own rate.
func TestClassRates(t *testing.T) {
	ask := visitor(t, Options{Access: access.Options{Rules: rules(t, "training=1/s", "bots=1/s")}})
	for i, c := range []struct {
		from, agent string
		want        int
	}{
		{"192.0.2.1", "ClaudeBot", 200},
		{"192.0.3.2", "ClaudeBot", 200},
		{"192.0.4.3", "ClaudeBot", 429},
		{"192.0.4.3", "CCBot", 200}, // another bot of the same class
		{nowhere, "GPTBot", 200},
		{nowhere, "GPTBot", 200},
		{nowhere, "GPTBot", 429}, // a forged name; it does not use up the bot's rate
		{theirs, "GPTBot", 200},
		{"192.0.2.1", "SomeBot", 200},
		{"192.0.2.1", "OtherBot", 200},
		{"192.0.2.1", "SomeBot", 429},
		{"192.0.9.1", "SomeBot", 200},
		{"192.0.2.1", browser, 200},
	} {
		w := ask(c.from, c.agent, "/a/")
		if w.Code != c.want {
			t.Errorf("%d: %s from %s: %d, want %d", i, c.agent, c.from, w.Code, c.want)
		}
		h := w.Header()
		if limited := c.agent != browser; (h.Get("Ratelimit") != "") != limited || (h.Get("Ratelimit-Policy") != "") != limited || (h.Get("Retry-After") != "") != (c.want == 429) {
			t.Errorf("%d: %v", i, h)
		}
	}
	w := ask("192.0.2.1", "ClaudeBot", "/notes")
	if h := w.Header(); w.Code != 429 || h.Get("RateLimit") != `"training";r=0;t=2` || h.Get("RateLimit-Policy") != `"training";q=2;w=2` || h.Get("Retry-After") != "1" ||
		!strings.HasPrefix(w.Body.String(), `{"notes":{"code":"RATE_LIMITED"`) {
		t.Errorf("%d %v %s", w.Code, h, w.Body)
	}
}

// If Rate is set, too, the response reports both limits.
func TestTwoRates(t *testing.T) {
	ask := visitor(t, Options{Access: access.Options{Rules: rules(t, "training=1/s"), Rate: 5}})
	h := ask("192.0.2.1", "ClaudeBot", "/a/llm.json").Header()
	if got := strings.Join(h["Ratelimit"], ", "); got != `"training";r=1;t=1, "client";r=9;t=1` || strings.Join(h["Ratelimit-Policy"], ", ") != `"training";q=2;w=2, "client";q=10;w=2` {
		t.Errorf("%v", h)
	}
	// A 304 omits the fields, since a cache would store them.
	if w := ask("192.0.2.1", "ClaudeBot", "/a/llm.json", "If-None-Match", h.Get("ETag")); w.Code != 304 || w.Header()["Ratelimit"] != nil {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	h = ask("192.0.2.1", "ClaudeBot", "/a/llm.json").Header()
	if got := strings.Join(h["Ratelimit"], ", "); got != `"training";r=0;t=2` || h.Get("Retry-After") != "1" {
		t.Errorf("%v", h)
	}
}

// Rules do not apply to a client with a valid key. An invalid key changes nothing.
func TestKeysAndClasses(t *testing.T) {
	k := newRing(t)
	ask := visitor(t, Options{Access: access.Options{Rules: rules(t, "bots=403"), Keys: k}})
	for key, want := range map[string]int{k.read: 200, k.update: 200, k.not: 403, k.expired: 403, "": 403, "x": 403} {
		if w := ask(nowhere, "GPTBot", "/a/llm.json", "Authorization", "Bearer "+key); w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
}

// After many invalid keys from one network, keys are no longer looked up, so that a valid one
// gets the same response.
func TestKeyGuessing(t *testing.T) {
	k := newRing(t)
	now := past
	clock := func() time.Time { return now }
	g := setup{files: site(), guarded: true, o: Options{Access: access.Options{Keys: k, Now: clock}}}.gateway(t)
	try := func(from, key string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/a/llm.json", nil)
		r.RemoteAddr = from
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	for i := range 30 {
		if w := try("[2001:db8::1]:1", k.not); w.Code != 401 {
			t.Fatalf("guess %d: %d", i, w.Code)
		}
	}
	for _, key := range []string{k.not, k.read} {
		if w := try("[2001:db8::2]:1", key); w.Code != 429 || w.Header().Get("Retry-After") != "2" {
			t.Errorf("after many guesses: %d %v", w.Code, w.Header())
		}
	}
	if w := try("[2001:db8:1::1]:1", k.read); w.Code != 200 {
		t.Errorf("another network: %d", w.Code)
	}
	// A request without a key does not count as a guess.
	if w := ask(g, "GET", "/a/llm.json"); w.Code != 401 {
		t.Errorf("%d", w.Code)
	}
	now = now.Add(2 * time.Second)
	if w := try("[2001:db8::1]:1", k.read); w.Code != 200 {
		t.Errorf("a while later: %d", w.Code)
	}
	// Valid keys are not limited.
	for range 5 * 30 {
		if w := try("[2001:db8:2::1]:1", k.read); w.Code != 200 {
			t.Fatalf("%d", w.Code)
		}
	}
}
