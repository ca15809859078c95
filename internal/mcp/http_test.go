package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/store"
)

// listen serves a server as the command does, with a gateway that has no other content.
func listen(t testing.TB, s *Server, o gateway.Options) string {
	t.Helper()
	o.Service = s
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := gateway.New(nil, &o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := gateway.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, ln, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String() + Path
}

// keyed adds a key to requests.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if k != "" {
		r.Header.Set("Authorization", "Bearer "+string(k))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// dial returns a session of the SDK's client that sends the key.
func dial(t testing.TB, url, key string) (*sdk.ClientSession, error) {
	t.Helper()
	return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: keyed(key)}, MaxRetries: -1,
	}, nil)
}

func TestStreamableHTTP(t *testing.T) {
	url := listen(t, New(mills(t), &Options{Local: true}), gateway.Options{})
	c, err := dial(t, url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if out, _ := asked[sitesOut](t, c, "list_sites", nil); len(out.Sites) != 2 {
		t.Errorf("%+v", out)
	}
	if out, _ := asked[searchOut](t, c, "search", map[string]any{"query": "undershot wheel"}); len(out.Hits) == 0 || out.Hits[0].URL != mill+"wheels/" {
		t.Errorf("%+v", out)
	}
	if out, _ := asked[readOut](t, c, "read_page", map[string]any{"url": mill + "wheels/"}); !strings.Contains(out.Markdown, "little fall") {
		t.Errorf("%+v", out)
	}
	if code, why := refused(t, c, "read_page", map[string]any{"url": mill + "hidden"}); code != "no-page" {
		t.Error(why)
	}
}

// post sends a body with the headers of the protocol.
func post(t testing.TB, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestHostileRequests(t *testing.T) {
	local := listen(t, New(mills(t), &Options{Local: true}), gateway.Options{})
	open := listen(t, New(mills(t), nil), gateway.Options{})
	host := strings.TrimSuffix(strings.TrimPrefix(local, "http://"), Path)
	list := func(args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_sites","arguments":` + args + `}}`
	}
	for _, q := range []struct {
		name, url, body string
		header          []string
		status          int
		want            string
	}{
		{"good", local, ping, nil, 200, `"result"`},
		{"no arguments", local, list("null"), nil, 200, mill},
		{"its own origin", local, ping, []string{"Origin", "http://" + host}, 200, `"result"`},
		{"localhost", local, ping, []string{"Host", "localhost:1"}, 200, `"result"`},
		{"another host", local, ping, []string{"Host", "evil.example"}, 403, ""},
		{"a host with a similar name", local, ping, []string{"Host", "localhost.evil.example"}, 403, ""},
		{"rebinding", local, ping, []string{"Host", "evil.example", "Origin", "http://evil.example"}, 403, ""},
		{"another origin", local, ping, []string{"Origin", "https://evil.example"}, 403, ""},
		{"another port", local, ping, []string{"Origin", "http://127.0.0.1:1"}, 403, ""},
		{"Origin: null", local, ping, []string{"Origin", "null"}, 403, ""},
		{"behind a proxy", open, ping, []string{"Host", "mill.example"}, 200, `"result"`},
		{"behind a proxy, from a page", open, ping, []string{"Host", "mill.example", "Origin", "https://evil.example"}, 403, ""},
		{"a batch", local, "\n[" + strings.TrimSuffix(strings.Repeat(list("{}")+",", 300), ",") + "]", nil, 400, ""},
		{"a body that is too large", local, list(`{"after":"` + strings.Repeat("x", maxBody) + `"}`), nil, 413, "65536"},
		{"no JSON", local, "{", nil, 400, ""},
		{"nothing", local, "", nil, 400, ""},
		{"no message", local, `{"a":1}`, nil, 400, ""},
		{"nested", local, list(strings.Repeat(`{"after":`, 5000) + "1" + strings.Repeat("}", 5000)), nil, 400, ""},
		{"another type", local, ping, []string{"Content-Type", "text/plain"}, 415, ""},
		{"an unknown version", local, ping, []string{"Mcp-Protocol-Version", "1999-01-01"}, 400, ""},
		{"an unknown session", local, ping, []string{"Mcp-Session-Id", "stolen"}, 200, `"result"`},
		{"an unknown method", local, `{"jsonrpc":"2.0","id":1,"method":"sites/delete"}`, nil, 400, ""},
		{"a subscription", local, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"millrace://page/x"}}`, nil, 200, `"code":-32601`},
		{"levels of a log", local, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`, nil, 200, `"code":-32601`},
		{"another path", local + "/x", ping, nil, 404, ""},
	} {
		status, _, body := post(t, q.url, q.body, q.header...)
		if status != q.status || !strings.Contains(body, q.want) {
			t.Errorf("%s: %d %.300s, want %d %s", q.name, status, body, q.status, q.want)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		r, err := http.NewRequestWithContext(t.Context(), method, local, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %d %v", method, resp.StatusCode, resp.Header)
		}
	}
}

// The revision without sessions defines subscriptions/listen. The server refuses it.
func TestNoSubscriptions(t *testing.T) {
	url := listen(t, New(mills(t), nil), gateway.Options{})
	const version = "2026-07-28"
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	done := make(chan string, 1)
	go func() {
		status, _, text := post(t, url, body, "Mcp-Protocol-Version", version, "Mcp-Method", "subscriptions/listen")
		done <- fmt.Sprint(status, " ", text)
	}()
	select {
	case got := <-done:
		if !strings.Contains(got, `"code":-32601`) {
			t.Error(got)
		}
	case <-time.After(5 * time.Minute):
		t.Error("it listens")
	}
}

// Hundreds of clients that never end their session use no resources permanently.
func TestManySessions(t *testing.T) {
	n := 800
	if testing.Short() {
		n = 160
	}
	s := New(mills(t), nil)
	url := listen(t, s, gateway.Options{})
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	post(t, url, hello)
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range n / 8 {
				if status, h, body := post(t, url, hello); status != 200 || h.Get("Mcp-Session-Id") != "" {
					t.Errorf("%d %v %s", status, h, body)
					return
				}
			}
		})
	}
	wg.Wait()
	sessions := 0
	for range s.sdk.Sessions() {
		sessions++
	}
	if sessions != 0 {
		t.Errorf("%d sessions remain", sessions)
	}
	for deadline := time.Now().Add(5 * time.Minute); runtime.NumGoroutine() > before+50; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// When a client disconnects, its call ends.
func TestClientDisconnects(t *testing.T) {
	waits := make(chan struct{})
	s := New(slow{mills(t), waits}, &Options{Calls: 1})
	url := listen(t, s, gateway.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_changes","arguments":{"site":"`+mill+`"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
		resp.Body.Close()
		t.Fatal("the call was answered")
	}
	for deadline := time.Now().Add(5 * time.Minute); len(s.turns) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call continues")
		}
	}
}

func TestKeysAndRates(t *testing.T) {
	lib := mills(t)
	add := func(name string, scopes ...millrace.Scope) string {
		key, hash := store.NewKey()
		if err := lib.store.Keys().Add(t.Context(), store.Key{Name: name, Hash: hash, Scopes: scopes}); err != nil {
			t.Fatal(err)
		}
		return key
	}
	reader, writer := add("reader", millrace.ScopeRead), add("writer", millrace.ScopeUpdate)
	url := listen(t, New(lib, nil), gateway.Options{ServiceGuarded: true, Access: access.Options{Keys: lib.store.Keys()}})
	for _, q := range []struct {
		key    string
		status int
	}{{"", 401}, {"nonsense", 401}, {writer, 403}, {reader, 200}} {
		var header []string
		if q.key != "" {
			header = []string{"Authorization", "Bearer " + q.key}
		}
		status, h, body := post(t, url, ping, header...)
		if status != q.status || status == 401 && h.Get("Www-Authenticate") == "" {
			t.Errorf("key %.6q: %d %v %s", q.key, status, h, body)
		}
		if status == 200 && !strings.Contains(strings.Join(h["Cache-Control"], ","), "private") {
			t.Errorf("a response for a key may be cached: %v", h)
		}
	}
	if _, err := dial(t, url, ""); err == nil {
		t.Error("a client without a key is accepted")
	}
	c, err := dial(t, url, reader)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	asked[sitesOut](t, c, "list_sites", nil)
	if err := lib.store.Keys().Revoke(t.Context(), "reader"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_sites"}); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a revoked key is accepted")
		}
	}

	url = listen(t, New(lib, nil), gateway.Options{Access: access.Options{Rate: 0.001}})
	var last int
	for range 3 {
		last, _, _ = post(t, url, ping)
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("too many requests: %d", last)
	}
}

// oneEdition is the publication of a gateway.
type oneEdition struct{ v millrace.View }

func (oneEdition) Annotate(millrace.Subject) {}

func (e oneEdition) View() (millrace.View, error) {
	if e.v == nil {
		return nil, millrace.ErrUnavailable
	}
	return e.v, nil
}
func (e oneEdition) Wait(context.Context, uint64) (millrace.View, error) { return e.View() }
func (e oneEdition) Update(context.Context, []string, bool) (millrace.Counts, error) {
	return millrace.Counts{}, errors.New("not here")
}

// Behind a gateway, the server reads the published site.
func TestOverAGateway(t *testing.T) {
	lib := mills(t)
	if err := lib.Index(t.Context(), mill, nil); err != nil {
		t.Fatal(err)
	}
	site, err := lib.Site(t.Context(), mill)
	if err != nil {
		t.Fatal(err)
	}
	v := site.View
	lib.apply(mill, put("/later", "Later", text("It is not published yet.")))
	s := New(nil, &Options{Terms: lib.terms[mill]})
	live := oneEdition{v}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.Scope(r); !ok {
			http.NotFound(w, r)
		} else if err := s.Serve(w, r, live); err != nil {
			http.Error(w, err.Error(), millrace.Status(err))
		}
	}))
	defer server.Close()
	c, err := dial(t, server.URL+Path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if out, _ := asked[sitesOut](t, c, "list_sites", nil); len(out.Sites) != 1 || out.Sites[0].Name != mill || out.Sites[0].Pages != 2 || out.Sites[0].Terms == nil {
		t.Errorf("%+v", out.Sites)
	}
	if out, _ := asked[searchOut](t, c, "search", map[string]any{"query": "wheel"}); len(out.Hits) != 1 || out.Hits[0].URL != mill+"wheels/" {
		t.Errorf("%+v", out.Hits)
	}
	if code, why := refused(t, c, "read_page", map[string]any{"url": mill + "later"}); code != "no-page" {
		t.Error(why)
	}
	if out, _ := asked[changesOut](t, c, "list_changes", nil); len(out.Changes) != 2 || out.More {
		t.Errorf("%+v", out)
	}
	live.v = nil
	if code, why := refused(t, c, "list_sites", nil); code != "unavailable" {
		t.Error(why)
	}
	// Without a gateway, the server has no site.
	if code, why := refused(t, connect(t, s, nil), "list_sites", nil); code != "internal" {
		t.Error(why)
	}
}

func TestScopeIsForAgents(t *testing.T) {
	s := New(nil, nil)
	for _, q := range []struct {
		method, path, accept string
		want                 bool
	}{
		{"POST", "/mcp", "", true},
		{"GET", "/mcp", "text/event-stream", true},
		{"DELETE", "/mcp", "", true},
		{"GET", "/mcp", "text/html,*/*", false}, // a page of the site
		{"HEAD", "/mcp", "", false},
		{"POST", "/mcp/", "", false},
		{"POST", "/%6dcp", "", false},
		{"POST", "/", "", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), q.method, q.path, nil)
		r.Header.Set("Accept", q.accept)
		if scope, ok := s.Scope(r); ok != q.want || ok && scope != millrace.ScopeRead {
			t.Errorf("%s %s %s: %v %v", q.method, q.path, q.accept, scope, ok)
		}
	}
}

func TestLocalNames(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:80": true, "127.0.0.1:8081": true, "[::1]:8081": true, "::1": true, "app.localhost": true, "127.9.9.9": true,
		"": false, "example.com": false, "localhost.example": false, "10.0.0.1": false, "[::]": false, "0.0.0.0": false, "127.0.0.1.example": false,
	} {
		if got := local(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
