package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/protocol/tct"
)

// limitedTo returns a gateway with a limit and its own clock, and a function that sends
// requests from an address.
func limitedTo(t *testing.T, o Options) (from func(address, target string, fields ...string) *httptest.ResponseRecorder, pass func(time.Duration)) {
	t.Helper()
	now := past
	o.Access.Now = func() time.Time { return now }
	g := setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}, o: o}.gateway(t)
	from = func(address, target string, fields ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.RemoteAddr = address
		for i := 0; i < len(fields); i += 2 {
			r.Header.Add(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	return from, func(d time.Duration) { now = now.Add(d) }
}

func TestRate(t *testing.T) {
	from, pass := limitedTo(t, Options{Access: access.Options{Rate: 2}})
	const a, b = "192.0.2.1:1000", "192.0.2.2:1000"
	for i, target := range []string{"/a/llm.json", "/notes", "/notes?q=All", "/notes/all"} {
		if w := from(a, target); w.Code != 200 {
			t.Fatalf("%d: %d", i, w.Code)
		}
	}
	for target, form := range map[string]string{"/a/llm.json": `{"error":{"code":"RATE_LIMITED"`, "/notes": `{"notes":{"code":"RATE_LIMITED"`, "/notes?q=A": `{"notes":`, "/notes/all": `{"notes":`} {
		w := from(a, target)
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" || !strings.HasPrefix(w.Body.String(), form) {
			t.Errorf("%s: %d %v %s", target, w.Code, w.Header(), w.Body)
		}
	}
	// The site's own pages, discovery and missing documents are not counted.
	for target, want := range map[string]int{"/a/": 200, "/style.css": 200, "/.well-known/notes": 200, "/notes/no": 404, "/no": 404, "/healthz": 200} {
		for range 5 {
			if w := from(a, target); w.Code != want {
				t.Errorf("%s: %d", target, w.Code)
			}
		}
	}
	if w := from("192.0.2.1:2000", "/notes"); w.Code != 429 {
		t.Errorf("another port is the same client: %d", w.Code)
	}
	if w := from(a, "/notes", "X-Forwarded-For", "198.51.100.1", "Forwarded", "for=198.51.100.1", "X-Real-IP", "198.51.100.1"); w.Code != 429 {
		t.Errorf("a client that sends its own X-Forwarded-For: %d", w.Code)
	}
	if w := from(b, "/notes"); w.Code != 200 {
		t.Errorf("another client: %d", w.Code)
	}
	pass(500 * time.Millisecond)
	if one, two := from(a, "/notes"), from(a, "/notes"); one.Code != 200 || two.Code != 429 {
		t.Errorf("half a second later: %d, %d", one.Code, two.Code)
	}
	for i := range 4 { // addresses of one IPv6 network
		if w := from(fmt.Sprintf("[2001:db8:0:1::%x]:1", i), "/notes"); w.Code != 200 {
			t.Errorf("%d", w.Code)
		}
	}
	if w := from("[2001:db8:0:1:ffff::1]:1", "/notes"); w.Code != 429 {
		t.Errorf("a client with 2^64 addresses: %d", w.Code)
	}
	if w := from("[2001:db8:0:2::1]:1", "/notes"); w.Code != 200 {
		t.Errorf("another network: %d", w.Code)
	}
}

// A key is one client at all addresses. An invalid key is not a client.
func TestRateOfKeys(t *testing.T) {
	k := newRing(t)
	from, _ := limitedTo(t, Options{Access: access.Options{Rate: 1, Keys: k}})
	for i, c := range []struct {
		address, key string
		want         int
	}{
		{"192.0.2.1:1", k.read, 200},
		{"192.0.2.2:1", k.read, 200},
		{"192.0.2.3:1", k.read, 429},
		{"192.0.2.1:1", k.update, 200},
		{"192.0.2.1:1", "", 200},
		{"192.0.2.1:1", k.not, 200},
		{"192.0.2.1:1", k.expired, 429},
		{"192.0.2.1:1", "x", 429},
		{"192.0.2.1:1", k.update, 200},
		{"192.0.2.9:1", k.update, 429},
	} {
		if w := from(c.address, "/notes", "Authorization", "Bearer "+c.key); w.Code != c.want {
			t.Errorf("%d: %d, want %d", i, w.Code, c.want)
		}
	}
}

// A few searches run at once. Others wait, then get a Retry-After. Other requests are not
// affected.
func TestSearchesAtOnce(t *testing.T) { synctest.Test(t, searchesAtOnce) }

func searchesAtOnce(t *testing.T) {
	n := &notes{slow: make(chan struct{})}
	g := setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: n}}, o: Options{Access: access.Options{MaxSearches: 2}}}.gateway(t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if w := ask(g, "GET", "/notes?q=slow"); w.Code != 200 {
				t.Errorf("%d", w.Code)
			}
		})
	}
	synctest.Wait()
	w := ask(g, "GET", "/notes?q=All")
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.HasPrefix(w.Body.String(), `{"notes":{"code":"RATE_LIMITED"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, target := range []string{"/notes", "/notes?url=/a/", "/notes?x=1", "/a/llm.json?x=1", "/a/?x=1", "/notes/all"} {
		if w := ask(g, "GET", target); w.Code != 200 && target != "/a/llm.json?x=1" {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	close(n.slow)
	wg.Wait()
	if w := ask(g, "GET", "/notes?q=All"); w.Code != 200 || g.guard.Active() != 0 {
		t.Errorf("afterwards: %d, %d", w.Code, g.guard.Active())
	}
}

// The cache field is HIT or MISS, and a HIT has an Age.
func TestCacheField(t *testing.T) {
	n := new(notes)
	g := setup{protocols: []edition.Protocol{{Name: "notes", Publisher: n}}}.gateway(t)
	state := func(method, target string, fields ...string) string {
		h := ask(g, method, target, fields...).Header()
		if age, err := strconv.Atoi(h.Get("Age")); (h.Get("Age") != "") != (h.Get("X-Notes-Cache") == "HIT") || h.Get("Age") != "" && (err != nil || age < 0 || age > 60) {
			t.Errorf("%s %s: %v", method, target, h)
		}
		return h.Get("X-Notes-Cache")
	}
	etag := ask(g, "HEAD", "/notes").Header().Get("ETag")
	for i, c := range []struct {
		method string
		fields []string
		want   string
	}{
		{"HEAD", nil, "MISS"},
		{"GET", []string{"If-None-Match", etag}, "MISS"},
		{"GET", nil, "MISS"},
		{"GET", nil, "HIT"},
		{"HEAD", nil, "HIT"},
		{"GET", []string{"If-None-Match", etag}, "HIT"},
		{"GET", []string{"Range", "bytes=0-1"}, "HIT"},
		{"GET", []string{"Accept-Encoding", "gzip"}, "MISS"},
		{"GET", []string{"Accept-Encoding", "gzip"}, "HIT"},
	} {
		if got := state(c.method, "/notes", c.fields...); got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
	for _, target := range []string{"/notes/all", "/a/llm.json"} {
		if got := state("GET", target); got != "" {
			t.Errorf("%s: %s", target, got)
		}
	}
}

// Every error at a protocol's path has the protocol's form.
func TestProtocolsForm(t *testing.T) {
	s := setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}}
	g := s.gateway(t)
	for _, c := range []struct {
		method, target string
		status         int
		part           string
	}{
		{"GET", "/notes/none", 404, `"status":404`},
		{"POST", "/notes", 405, `"status":405`},
		{"GET", "/notes?q=", 400, `"NO_WORD"`},
		{"GET", "/notes/gone", 410, `"GONE"`},
		{"GET", "/notes/broken", 500, `"ERROR"`},
		{"GET", "/notes/panic", 500, `"ERROR"`},
		{"GET", "/notes/events?after=x", 400, `"NO_NUMBER"`},
		{"POST", "/notes/update", 401, `"AUTH_REQUIRED"`},
	} {
		for _, method := range []string{c.method, "HEAD"} {
			if method != c.method && c.method != "GET" || method != c.method && strings.HasPrefix(c.target, "/notes/events") {
				continue
			}
			w := ask(g, method, c.target)
			h := w.Header()
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.part) && method != "HEAD" || method == "HEAD" && w.Body.Len() > 0 {
				t.Errorf("%s %s: %d %s", method, c.target, w.Code, w.Body)
			}
			if h.Get("X-Notes") != "1" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" || h.Get("Content-Length") == "7" ||
				strings.Contains(w.Body.String(), "secret") || (h.Get("Allow") != "") != (c.status == 405) {
				t.Errorf("%s %s: %v", method, c.target, h)
			}
		}
	}
	// Errors at other paths keep their form.
	for target, part := range map[string]string{"/missing": "<p>own 404", "/missing/llm.json": `{"error":{`, "/notesy": "<p>own 404"} {
		if w := ask(g, "GET", target); w.Code != 404 || !strings.Contains(w.Body.String(), part) {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/notes", strings.NewReader(strings.Repeat("x", maxBody+1)))
	w := httptest.NewRecorder()
	if g.ServeHTTP(w, r); w.Code != 413 || !strings.HasPrefix(w.Body.String(), `{"notes":`) || w.Header().Get("Connection") != "close" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	full := s
	full.o.Access.MaxRequests = -1 // no concurrent requests
	g = full.gateway(t)
	if w := ask(g, "GET", "/notes"); w.Code != 503 || !strings.HasPrefix(w.Body.String(), `{"notes":`) || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	early := s
	early.unready = true
	g = early.gateway(t)
	if w := ask(g, "GET", "/.well-known/notes"); w.Code != 200 {
		t.Errorf("discovery before the first edition: %d", w.Code)
	}
	for _, target := range []string{"/notes", "/notes/1"} {
		if w := ask(g, "GET", target); w.Code != 503 || !strings.HasPrefix(w.Body.String(), `{"notes":`) || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", target, w.Code, w.Header(), w.Body)
		}
	}
	if _, err := (live{g: g}).View(); millrace.Status(err) != 503 {
		t.Errorf("%v", err)
	}
}

// A 406 for lack of a content coding varies by Accept-Encoding.
func TestNotAcceptable(t *testing.T) {
	draft := tct.Draft03()
	g := setup{protocols: []edition.Protocol{{Name: draft.Name, Publisher: draft.NewPublisher(nil)}}}.gateway(t)
	w := ask(g, "GET", "/tct-pages.json", "Accept-Encoding", "identity;q=0")
	if h := w.Header(); w.Code != http.StatusNotAcceptable || h.Get("Vary") != "Accept-Encoding" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, h)
	}
}
