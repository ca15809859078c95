package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// ring is a key store with one key of each kind.
type ring struct {
	store.Keys
	read, update, both    string
	expired, revoked, not string
}

func newRing(t testing.TB) *ring {
	t.Helper()
	k := &ring{Keys: memory.New(nil).Keys()}
	add := func(name string, expires time.Time, scopes ...millrace.Scope) string {
		key, hash := store.NewKey()
		if err := k.Add(t.Context(), store.Key{Name: name, Hash: hash, Scopes: scopes, Expires: expires}); err != nil {
			t.Fatal(err)
		}
		return key
	}
	k.read = add("read", time.Time{}, millrace.ScopeRead)
	k.update = add("update", time.Now().Add(time.Hour), millrace.ScopeUpdate)
	k.both = add("both", time.Time{}, millrace.ScopeRead, millrace.ScopeUpdate)
	k.expired = add("expired", time.Now().Add(-time.Second), millrace.ScopeRead, millrace.ScopeUpdate)
	k.revoked = add("revoked", time.Time{}, millrace.ScopeRead, millrace.ScopeUpdate)
	if err := k.Revoke(t.Context(), "revoked"); err != nil {
		t.Fatal(err)
	}
	k.not, _ = store.NewKey()
	return k
}

// closed returns a gateway whose content needs a key.
func closed(t testing.TB, k *ring, o Options, files proxy.Files) (*Gateway, *notes, *bytes.Buffer) {
	t.Helper()
	n, log := new(notes), new(bytes.Buffer)
	if k != nil {
		o.Access.Keys = k
	}
	g := setup{guarded: true, files: files, protocols: []edition.Protocol{{Name: "notes", Publisher: n, Guarded: true}}, o: o, log: log}.gateway(t)
	return g, n, log
}

var content = []string{"/notes", "/notes?q=About", "/notes?url=/a/", "/notes/all", "/llm-pages.json", "/a/llm.json", "/notes/events", "/notes/gone", "/notes/broken"}

func TestContentNeedsKey(t *testing.T) {
	k := newRing(t)
	g, n, _ := closed(t, k, Options{}, nil)
	for _, c := range []struct {
		name, field string
		status      int
		challenge   string // part of WWW-Authenticate
	}{
		{"none", "", 401, `Bearer realm="millrace"`},
		{"empty", "Bearer", 401, `Bearer realm="millrace"`},
		{"other scheme", "Basic " + k.read, 401, `Bearer realm="millrace"`},
		{"unknown", "Bearer " + k.not, 401, `error="invalid_token", error_description="unknown key`},
		{"mistyped", "Bearer " + k.read[:len(k.read)-1], 401, `error="invalid_token", error_description="the key has 53`},
		{"another word", "Bearer secret", 401, `error="invalid_token", error_description="a key must start with mill_`},
		{"expired", "Bearer " + k.expired, 401, `error_description="the key has expired"`},
		{"revoked", "Bearer " + k.revoked, 401, `error_description="the key is revoked"`},
		{"without the scope", "Bearer " + k.update, 403, `error="insufficient_scope", scope="read"`},
		{"two keys", "Bearer " + k.not + ", Bearer " + k.read, 400, `error="invalid_request"`},
		{"trailing", "Bearer " + k.read + " x", 401, "invalid_token"},
	} {
		for _, target := range append(content, "/nothing/llm.json", "/notes/nothing", "/nothing") {
			for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
				if method == "OPTIONS" && target == "/notes/events" {
					continue // OPTIONS has no resource at this path
				}
				w := ask(g, method, target, "Authorization", c.field, "If-None-Match", "*", "Origin", "https://evil.test")
				h := w.Header()
				if w.Code != c.status || !strings.Contains(h.Get("WWW-Authenticate"), c.challenge) {
					t.Errorf("%s: %s %s: %d %v", c.name, method, target, w.Code, h)
				}
				if h.Get("Cache-Control") != "no-store" || h.Get("Vary") != "Authorization" || h.Get("Access-Control-Allow-Origin") != "" || h.Get("ETag") != "" {
					t.Errorf("%s: %s %s: other origins may read the error: %v", c.name, method, target, h)
				}
				if strings.Contains(w.Body.String()+fmt.Sprint(h), k.read[8:20]) {
					t.Errorf("%s: the key is repeated: %s", c.name, w.Body)
				}
				if strings.HasPrefix(target, "/notes") && method == "GET" && (!strings.HasPrefix(w.Body.String(), `{"notes":{`) || h.Get("X-Notes") != "1") {
					t.Errorf("%s: %s: not in the protocol's form: %s", c.name, target, w.Body)
				}
			}
		}
		w := ask(g, "GET", "/.well-known/notes", "Authorization", c.field)
		if h := w.Header(); w.Code != 200 || w.Body.String() != "notes of https://x.test/" || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: discovery is not public: %d %v", c.name, w.Code, h)
		}
	}
	if n.finds.Load() != 0 {
		t.Errorf("%d searches for clients without a key", n.finds.Load())
	}
	for target, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/": 200, "/robots.txt": 200, "/.well-known/notes?x=1": 200} {
		if w := ask(g, "GET", target); w.Code != want {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

func TestKeyOpensContent(t *testing.T) {
	k := newRing(t)
	g, _, _ := closed(t, k, Options{}, nil)
	for _, field := range []string{"Bearer " + k.read, "bearer  " + k.both, "BEARER " + k.read} {
		for target, want := range map[string]int{
			"/notes": 200, "/notes?q=About": 200, "/notes?url=/a/": 200, "/notes/all": 200, "/llm-pages.json": 200, "/a/llm.json": 200,
			"/notes?q=": 400, "/notes/gone": 410, "/notes/broken": 500, "/notes/nothing": 404, "/nothing/llm.json": 404,
		} {
			for range 2 { // cold cache, then warm
				w := ask(g, "GET", target, "Authorization", field)
				h := w.Header()
				if w.Code != want {
					t.Errorf("%s: %d %s", target, w.Code, w.Body)
				}
				if want != 200 {
					if h.Get("Cache-Control") != "no-store" {
						t.Errorf("%s: %v", target, h)
					}
					continue
				}
				not := ask(g, "GET", target, "Authorization", field, "If-None-Match", h.Get("ETag"))
				if not.Code != 304 {
					t.Errorf("%s: %d, not a 304", target, not.Code)
				}
				for _, h := range []http.Header{h, not.Header()} {
					control := h.Get("Cache-Control")
					if !strings.Contains(control, "private") || strings.Contains(control, "public") || strings.Contains(control, "s-maxage") ||
						len(h["Vary"]) != 1 || !strings.Contains(h.Get("Vary"), "Authorization") || !strings.Contains(h.Get("Vary"), "Accept-Encoding") ||
						h.Get("Access-Control-Allow-Origin") != "" {
						t.Errorf("%s: shared caches may store it: %v", target, h)
					}
				}
				// A cached response also needs a key.
				if w := ask(g, "GET", target); w.Code != 401 {
					t.Errorf("%s without a key: %d", target, w.Code)
				}
			}
		}
	}
	if w := ask(g, "GET", "/notes", "Authorization", "Bearer "+k.read, "Authorization", "Bearer "+k.read); w.Code != 400 {
		t.Errorf("two fields: %d", w.Code)
	}
	if h := ask(g, "GET", "/notes", "Authorization", "Bearer "+k.read).Header(); h.Get("Cache-Control") != "private, max-age=60, must-revalidate" {
		t.Errorf("%v", h)
	}
}

// Protocols that are not guarded and the site's own pages need no key.
func TestOpenProtocol(t *testing.T) {
	k := newRing(t)
	o := Options{Access: access.Options{Keys: k}}
	g := setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes), Guarded: true}}, o: o}.gateway(t)
	for target, want := range map[string]int{
		"/llm-pages.json": 200, "/a/llm.json": 200, "/a/": 200, "/": 200, "/style.css": 200, "/nothing": 404, "/nothing/llm.json": 404,
		"/notes": 401, "/notes/all": 401, "/notes/nothing": 401,
	} {
		for _, field := range []string{"", "Bearer " + k.not, "Basic x"} {
			if w := ask(g, "GET", target, "Authorization", field); w.Code != want {
				t.Errorf("%s with %q: %d, want %d", target, field, w.Code, want)
			}
		}
	}
	if h := ask(g, "GET", "/a/llm.json").Header(); strings.Contains(h.Get("Cache-Control"), "private") || strings.Contains(h.Get("Vary"), "Authorization") {
		t.Errorf("open content: %v", h)
	}
}

func TestWithoutKeys(t *testing.T) {
	k := newRing(t)
	g, _, _ := closed(t, nil, Options{}, nil)
	if w := ask(g, "GET", "/notes", "Authorization", "Bearer "+k.read); w.Code != 401 {
		t.Errorf("%d", w.Code)
	}
	open := setup{protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}}.gateway(t)
	if w := ask(open, "POST", "/notes/update", "Authorization", "Bearer "+k.both); w.Code != 401 {
		t.Errorf("%d", w.Code)
	}
}

// Keys in URLs are refused and never logged.
func TestKeyInURL(t *testing.T) {
	k := newRing(t)
	var access bytes.Buffer
	g, _, log := closed(t, k, Options{RequestLog: &access}, nil)
	once := strings.ReplaceAll(url.QueryEscape(k.read), "mill", "%6D%69ll")
	for _, target := range []string{
		"/notes?key=" + k.read, "/notes?" + k.read, "/notes/" + k.read, "/" + k.read + "/llm.json", "/notes?q=x&access_token=" + k.read,
		"/notes?key=" + k.read[:40], "/notes?key=" + once, "/notes?key=" + url.QueryEscape(url.QueryEscape(once)), "/notes/" + once, "/notes/" + url.PathEscape(once),
		"/notes?key=%zz" + once, "/notes?key=mill_+mill_" + k.read,
		"http://" + k.read + "@x.test/notes", "http://x:" + k.read + "@x.test/notes", "http://" + k.read + ".x.test/notes",
	} {
		w := ask(g, "GET", target, "Authorization", "Bearer "+k.read)
		if w.Code != 400 || !strings.Contains(w.Body.String(), `"INVALID_PARAM"`) || strings.Contains(w.Body.String(), k.read[20:]) {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	for _, target := range []string{"/notes?q=mill_", "/notes?q=mill_race&x=" + strings.Repeat("mill_x-", 20), "/notes?q=" + strings.Repeat("%25", 50)} {
		if w := ask(g, "GET", target, "Authorization", "Bearer "+k.read); w.Code != 200 {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := ask(g, k.read, "/notes", "Authorization", "Bearer "+k.read); w.Code != 405 {
		t.Errorf("a key as the method: %d", w.Code)
	}
	g.requests.flush()
	if logged := access.String() + log.String(); strings.Contains(logged, k.read[10:30]) || !strings.Contains(logged, `/(a\x20key)`) {
		t.Error(logged)
	}
}

// A key that another process revokes soon stops working, and its streams end.
func TestRevoking(t *testing.T) {
	k := newRing(t)
	g, _, _ := closed(t, k, Options{}, nil)
	address, _ := serve(t, g)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/notes/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.read)
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "at 1\n" {
		t.Fatalf("%q %v", line, err)
	}
	if h := stream.Header; h.Get("Cache-Control") != "private, no-store" || h.Get("Vary") != "Authorization" || h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", h)
	}
	if err := k.Revoke(t.Context(), "read"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.HasPrefix(string(rest), "end ") {
		t.Errorf("%q %v", rest, err)
	}
	if w := ask(g, "GET", "/notes", "Authorization", "Bearer "+k.read); w.Code != 401 {
		t.Errorf("%d", w.Code)
	}
}

// If every protocol is guarded, a request without a key calls no protocol. The time of the
// response then reveals nothing about which documents exist.
func TestGuardedProtocolIsNotCalled(t *testing.T) {
	k := newRing(t)
	n := new(notes)
	g := setup{guarded: true, protocols: []edition.Protocol{{Name: "notes", Publisher: n, Guarded: true}}, o: Options{Access: access.Options{Keys: k}}}.gateway(t)
	for _, c := range []struct {
		target, field string
		status        int
		finds         int64
	}{
		{"/notes", "", 401, 0},
		{"/notes?q=About", "Bearer " + k.not, 401, 0},
		{"/notes/nothing", "Bearer " + k.update, 403, 0},
		{"/nothing", "", 401, 0},
		{"/%2Ewell-known/notes", "", 401, 0},
		{"/.well-known/notes", "", 200, 1},
		{"/notes", "Bearer " + k.read, 200, 1},
		{"/notes", "", 401, 0}, // the same with a warm cache
		{"/", "", 200, 1},
	} {
		before := n.asked.Load()
		if w := ask(g, "GET", c.target, "Authorization", c.field); w.Code != c.status {
			t.Errorf("%s: %d, want %d", c.target, w.Code, c.status)
		}
		if asked := n.asked.Load() - before; asked != c.finds {
			t.Errorf("%s with %.10q: the protocol is called %d times, want %d", c.target, c.field, asked, c.finds)
		}
	}
}

func TestUpdates(t *testing.T) {
	k := newRing(t)
	type call struct {
		urls []string
		gone bool
	}
	var calls []call
	o := Options{Access: access.Options{Keys: k}, Update: func(_ context.Context, urls []string, gone bool) (millrace.Counts, error) {
		calls = append(calls, call{urls, gone})
		if slices.Contains(urls, "/bad") {
			return millrace.Counts{}, &millrace.RequestError{Status: 400, Code: "BAD", Text: "/bad is not a page"}
		}
		return millrace.Counts{Updated: len(urls)}, nil
	}}
	for _, guarded := range []bool{false, true} {
		calls = nil
		g := setup{protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes), Guarded: guarded}}, o: o}.gateway(t)
		send := func(method, key, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "/notes/update", strings.NewReader(body))
			if key != "" {
				r.Header.Set("Authorization", "Bearer "+key)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			return w
		}
		for _, c := range []struct {
			key, body string
			status    int
		}{
			{"", "/a/", 401},
			{k.not, "/a/", 401},
			{k.read, "/a/", 403},
			{k.update, "/a/ /b.html", 200},
			{k.both, "/bad", 400},
			{k.update, strings.Repeat("/a/ ", maxServed/4+1), 413},
			{"", strings.Repeat("/a/ ", maxServed/4+1), 401},
			{k.update, strings.Repeat("/a/ ", 20_000), 200}, // more than the body limit of a request for a document
		} {
			w := send("POST", c.key, c.body)
			if w.Code != c.status || w.Code != 200 && (!strings.HasPrefix(w.Body.String(), `{"notes":`) || !strings.HasSuffix(w.Header().Get("Cache-Control"), "no-store")) {
				t.Errorf("%.20s: %d %s, want %d", c.body, w.Code, w.Body, c.status)
			}
		}
		if w := send("DELETE", k.update, "/a/"); w.Code != 200 || w.Header().Get("Cache-Control") != "private, no-store" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		if len(calls) != 4 || calls[0].gone || len(calls[0].urls) != 2 || !calls[3].gone {
			t.Errorf("%v", calls)
		}
		if g.guard.Active() != 0 || g.guard.Listening() != 0 {
			t.Errorf("%d active requests, %d streams", g.guard.Active(), g.guard.Listening())
		}
	}
	g := setup{protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}, o: Options{Access: access.Options{Keys: k}}}.gateway(t)
	if w := ask(g, "POST", "/notes/update", "Authorization", "Bearer "+k.both); w.Code != 503 {
		t.Errorf("a site that accepts no updates: %d", w.Code)
	}
}

// A stream outlasts the time limits of other requests, reports every edition, and ends when
// the server stops.
func TestStream(t *testing.T) {
	t.Parallel()
	at := new(oneView)
	g := setup{site: at, protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}, o: Options{Access: access.Options{MaxStreams: 2, MaxRequests: 1}}}.gateway(t)
	address, stop := serve(t, g, ServerOptions{ReadTimeout: testTimeLimit, WriteTimeout: testTimeLimit})
	var streams []*http.Response
	for range 2 {
		res, err := http.Get("http://" + address + "/notes/events?after=1")
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		defer res.Body.Close()
		streams = append(streams, res)
	}
	if res, body := get(t, "http://"+address+"/notes/events"); res.StatusCode != http.StatusServiceUnavailable || !strings.HasPrefix(body, `{"notes":`) || res.Header.Get("Retry-After") == "" {
		t.Errorf("one stream too many: %s %s", res.Status, body)
	}
	if res, _ := get(t, "http://"+address+"/notes"); res.StatusCode != http.StatusOK {
		t.Errorf("streams take the slots of other requests: %s", res.Status)
	}
	time.Sleep(testTimeLimit + testTimeLimit/8) // longer than every limit
	at.mu.Lock()
	at.view = protocoltest.NewView(millrace.Site{Base: "https://x.test/", EndpointBase: "https://x.test/", Epoch: "e", Seq: 2, Time: past.Add(time.Hour)}, []*millrace.Page{page("https://x.test/", "Home")})
	at.mu.Unlock()
	if _, err := g.server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		b := make([]byte, 5)
		if _, err := io.ReadFull(s.Body, b); err != nil || string(b) != "at 2\n" {
			t.Fatalf("%q %v", b, err)
		}
	}
	begin := time.Now()
	if err := stop(); err != nil || time.Since(begin) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	for _, s := range streams {
		if b, err := io.ReadAll(s.Body); err != nil || !strings.Contains(string(b), "end unavailable\n") {
			t.Errorf("%q %v", b, err)
		}
	}
}
