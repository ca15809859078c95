package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/store"
)

// events stores the events it receives.
type events struct {
	mu  sync.Mutex
	all []store.Event
	new chan struct{} // nil if no test waits
}

func (e *events) Record(one store.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
	if e.new != nil {
		e.new <- struct{}{}
	}
}

// last returns the events since the last call.
func (e *events) last() []store.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { e.all = nil }()
	return e.all
}

const gptBot = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"

func recorded(t *testing.T, o Options) (*Gateway, *events) {
	t.Helper()
	eventLog := new(events)
	o.Events, o.Access.Bots = eventLog, known(t)
	return setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}, o: o}.gateway(t), eventLog
}

// The event of a response has its status, sizes, subject and sender.
func TestEvents(t *testing.T) {
	g, eventLog := recorded(t, Options{})
	const tct, notesProtocol = "tct-01", "notes"
	key := store.KeyPrefix + strings.Repeat("a", 40)
	for _, tt := range []struct {
		name, method, target string
		fields               []string
		want                 store.Event
	}{
		{"a page's document", "GET", "/a/llm.json", nil, store.Event{Protocol: tct, Endpoint: store.EndpointFetch, Path: "/a/", Status: 200}},
		{"again", "GET", "/a/llm.json", nil, store.Event{Protocol: tct, Endpoint: store.EndpointFetch, Path: "/a/", Status: 200, Cached: true}},
		{"its head", "HEAD", "/a/llm.json", nil, store.Event{Protocol: tct, Endpoint: store.EndpointFetch, Path: "/a/", Status: 200, Cached: true}},
		{"a list", "GET", "/llm-pages.json", nil, store.Event{Protocol: tct, Endpoint: store.EndpointIndex, Path: "/llm-pages.json", Status: 200, Results: 3, Cached: true}},
		{"another", "GET", "/notes", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointIndex, Path: "/notes", Status: 200, Results: 3}},
		{"a part of a list", "GET", "/notes", []string{"Range", "bytes=0-1"}, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointIndex, Path: "/notes", Status: 206, Cached: true}},
		{"discovery", "GET", "/.well-known/notes", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointDiscovery, Path: "/.well-known/notes", Status: 200}},
		{"a search", "GET", "/notes?q=Home", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointSearch, Path: "/notes", Query: "Home", Results: 1, Status: 200}},
		{"a search without results", "GET", "/notes?q=nothing", []string{"X-OpenFeeder-Intent", "look"}, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointSearch, Path: "/notes", Query: "nothing", Intent: "look", Status: 200}},
		{"no search", "GET", "/notes?q=", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointSearch, Path: "/notes", Status: 400}},
		{"a page by query", "GET", "/notes?url=/a/", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointFetch, Path: "/a/", Status: 200}},
		{"the continuation of a page", "GET", "/notes?url=/a/&rest", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointFetch, Path: "/a/", Status: 200, HTML: -1}},
		{"no page", "GET", "/notes?url=/hidden", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointFetch, Path: "/hidden", Status: 404}},
		{"no document", "GET", "/notes/none?x=1", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointFetch, Path: "/notes/none", Status: 404}},
		{"a withdrawn document", "GET", "/notes/gone", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointFetch, Path: "/notes/gone", Status: 410}},
		{"a failure", "GET", "/notes/broken", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointIndex, Path: "/notes/broken", Status: 500}},
		{"a panic", "GET", "/notes/panic", nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointIndex, Path: "/notes/panic", Status: 500}},
		{"an unknown method", "POST", "/llm-pages.json", nil, store.Event{Protocol: tct, Endpoint: store.EndpointIndex, Path: "/llm-pages.json", Status: 405}},
		{"a page", "GET", "/a/?utm=1", nil, store.Event{Protocol: "html", Endpoint: store.EndpointFetch, Path: "/a/", Status: 200}},
		{"a missing page", "GET", "/none?x", nil, store.Event{Protocol: "html", Endpoint: store.EndpointFetch, Path: "/none", Status: 404}},
		{"a redirect", "GET", "/a", nil, store.Event{Protocol: "html", Endpoint: store.EndpointFetch, Path: "/a", Status: 301}},
		{"a file", "GET", "/style.css", nil, store.Event{Protocol: "html", Endpoint: store.EndpointFile, Path: "/style.css", Status: 200}},
		{"robots.txt", "GET", "/robots.txt", nil, store.Event{Protocol: "site", Endpoint: store.EndpointDiscovery, Path: "/robots.txt", Status: 200}},
		{"a HEAD", "HEAD", "/robots.txt", nil, store.Event{Protocol: "site", Endpoint: store.EndpointDiscovery, Path: "/robots.txt", Status: 200}},
		{"a range", "GET", "/robots.txt", []string{"Range", "bytes=0-9"}, store.Event{Protocol: "site", Endpoint: store.EndpointDiscovery, Path: "/robots.txt", Status: 206}},
		{"a key in the path", "GET", "/x/" + key, nil, store.Event{Protocol: "html", Endpoint: store.EndpointFetch, Path: "/(a key)", Status: 400}},
		{"a key in the query", "GET", "/notes?q=" + key, nil, store.Event{Protocol: notesProtocol, Endpoint: store.EndpointIndex, Path: "/notes", Status: 400}},
		{"a key in the intent", "GET", "/none.json", []string{"X-OpenFeeder-Intent", key}, store.Event{Protocol: "html", Endpoint: store.EndpointFile, Path: "/none.json", Status: 404}},
	} {
		before := time.Now()
		w := ask(g, tt.method, tt.target, append(tt.fields, "User-Agent", gptBot)...)
		got := eventLog.last()
		if len(got) != 1 {
			t.Errorf("%s: %d events", tt.name, len(got))
			continue
		}
		e := got[0]
		tt.want.Bot, tt.want.Family = "GPTBot", "openai"
		tt.want.Identity = store.Forged // its address does not belong to OpenAI
		if d := cmp.Diff(tt.want, e, cmpopts.IgnoreFields(store.Event{}, "Time", "Took", "Bytes", "Size", "Received")); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if e.Time.Before(before) || e.Took <= 0 || e.Took > time.Since(before) {
			t.Errorf("%s: at %v for %v", tt.name, e.Time, e.Took)
		}
		if e.Bytes != int64(w.Body.Len()) || (e.Status == 200 || e.Status == 206) && e.Size != e.Bytes {
			t.Errorf("%s: %d bytes, %d without coding, of %d", tt.name, e.Bytes, e.Size, w.Body.Len())
		}
		if strings.Contains(e.Path+e.Query+e.Intent, store.KeyPrefix) {
			t.Errorf("%s: the event has a key: %+v", tt.name, e)
		}
	}
}

// The event of a response has the right sizes, even if the response is compressed or has no body.
func TestEventSizes(t *testing.T) {
	g, eventLog := recorded(t, Options{})
	size := func(fields ...string) (e store.Event, w *httptest.ResponseRecorder) {
		t.Helper()
		w = ask(g, "GET", "/a/llm.json", append(fields, "User-Agent", gptBot)...)
		return eventLog.last()[0], w
	}
	plain, _ := size()
	for range 2 {
		coded, w := size("Accept-Encoding", "gzip")
		if coded.Bytes >= plain.Bytes || coded.Size != plain.Bytes || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("plain %d, coded %d of %d", plain.Bytes, coded.Bytes, coded.Size)
		}
		// The size of the HTML is recorded only for clients that accept compression.
		if plain.Received != -1 || coded.Received != 0 {
			t.Errorf("HTML on the wire: plain %d, coded %d", plain.Received, coded.Received)
		}
	}
	if e, _ := size("If-None-Match", "*"); e.Status != 304 || e.Bytes != 0 || e.Size != 0 || !e.Cached {
		t.Errorf("%+v", e)
	}
	ask(g, "GET", "/llm-pages.json", "Accept-Encoding", "gzip", "User-Agent", gptBot)
	list := eventLog.last()[0]
	ask(g, "GET", "/llm-pages.json", "User-Agent", gptBot)
	if full := eventLog.last()[0]; list.Bytes >= full.Bytes || list.Size != full.Bytes {
		t.Errorf("a list has %d bytes, coded %d of %d", full.Bytes, list.Bytes, list.Size)
	}
	ask(g, "GET", "/llm-pages.json", "If-None-Match", "*", "User-Agent", gptBot)
	if unmodified := eventLog.last()[0]; unmodified.Status != 304 || unmodified.Results != list.Results || unmodified.Results == 0 {
		t.Errorf("the event of an unchanged list counts its pages: %+v", unmodified)
	}
}

// Requests of browsers, of the owner and for health checks cause no events.
func TestNoEvents(t *testing.T) {
	const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
	g, eventLog := recorded(t, Options{Dashboard: http.NotFoundHandler(), DashboardPath: "/dashboard"})
	for _, target := range []string{"/", "/a/llm.json", "/llm-pages.json", "/none", "/robots.txt", "/notes?q=Home"} {
		ask(g, "GET", target, "User-Agent", browser)
		ask(g, "GET", target)
	}
	for _, target := range []string{"/healthz", "/readyz", "/dashboard", "/dashboard/x"} {
		ask(g, "GET", target, "User-Agent", gptBot)
	}
	inside, _ := g.OwnHandler()
	ask(inside, "GET", "/a/llm.json", "User-Agent", gptBot)
	mark, release := g.OwnRequests()
	own := http.Header{}
	mark(own)
	ask(g, "GET", "/a/llm.json", "User-Agent", gptBot, ownerField, own.Get(ownerField))
	if got := eventLog.last(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	release()
	ask(g, "GET", "/a/llm.json", "User-Agent", gptBot, ownerField, own.Get(ownerField))
	if got := eventLog.last(); len(got) != 1 {
		t.Errorf("%d events with a mark that has ended", len(got))
	}
}

// A millrace client on this machine counts as the owner. A client elsewhere, or behind an
// untrusted proxy, counts as any other client.
func TestEventsOfOwnClients(t *testing.T) {
	for name, c := range map[string]struct {
		from, agent, forwarded, trusted string
		events                          int
	}{
		"here":            {from: "127.0.0.1:7", agent: "millrace/1"},
		"another client":  {from: "127.0.0.1:7", agent: gptBot, events: 1},
		"elsewhere":       {from: "192.0.2.1:7", agent: "millrace/1 (bot)", events: 1},
		"untrusted proxy": {from: "127.0.0.1:7", agent: "millrace/1 (bot)", forwarded: "192.0.2.1", events: 1},
		"behind a proxy":  {from: "127.0.0.1:7", agent: "millrace/1 (bot)", forwarded: "192.0.2.1", trusted: "127.0.0.0/8", events: 1},
		"own proxy":       {from: "127.0.0.1:7", agent: "millrace/1", forwarded: "10.0.0.9", trusted: "127.0.0.0/8"},
	} {
		o := Options{}
		if c.trusted != "" {
			o.Access.Proxies = []netip.Prefix{netip.MustParsePrefix(c.trusted)}
		}
		g, eventLog := recorded(t, o)
		r := httptest.NewRequest(http.MethodGet, "/a/llm.json", nil)
		r.RemoteAddr = c.from
		r.Header.Set("User-Agent", c.agent)
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		g.ServeHTTP(httptest.NewRecorder(), r)
		if got := len(eventLog.last()); got != c.events {
			t.Errorf("%s: %d events, want %d", name, got, c.events)
		}
	}
}

// A refused bot causes an event with its request. Its signature is verified
// after the response.
func TestEventsOfClasses(t *testing.T) {
	g, eventLog := recorded(t, Options{Access: access.Options{Rules: rules(t, "training=403")}})
	ask(g, "GET", "/llm-pages.json", "User-Agent", gptBot)
	ask(g, "GET", "/a/", "User-Agent", gptBot)
	ask(g, "GET", "/notes?q=never+asked", "User-Agent", gptBot)
	got := eventLog.last()
	if len(got) != 3 || got[2].Status != 403 || got[2].Protocol != "notes" || got[2].Path != "/notes" || got[0].Status != 403 || got[0].Protocol != "tct-01" || got[0].Endpoint != store.EndpointIndex ||
		got[1].Status != 403 || got[1].Protocol != "html" || got[1].Path != "/a/" {
		t.Errorf("%+v", got)
	}

	signed := &signers{}
	g, eventLog = recorded(t, Options{Access: access.Options{Agents: signed}})
	eventLog.new = make(chan struct{}, 1)
	for _, tt := range []struct {
		signature, agent, bot string
		identity              store.BotIdentity
	}{
		{"chatgpt.com", "Mozilla/5.0", "ChatGPT-Agent", store.Verified},
		{"unknown.example", "Mozilla/5.0", "other", store.Verified},
		{"wrong", "Mozilla/5.0", "other", store.Forged},
		{"away", "ClaudeBot/1.0", "ClaudeBot", store.Unverified},
	} {
		ask(g, "GET", "/llm-pages.json", "User-Agent", tt.agent, "Signature", tt.signature)
		<-eventLog.new
		got := eventLog.last()[0]
		if got.Bot != tt.bot || got.Identity != tt.identity || got.Path != "/llm-pages.json" || got.Status != 200 {
			t.Errorf("%s: %+v", tt.signature, got)
		}
	}
	if signed.asked != 4 {
		t.Errorf("%d signatures were verified", signed.asked)
	}
}

// fields receives the fields of requests whose signatures are verified.
type fields chan http.Header

func (f fields) Verify(_ context.Context, r *http.Request) (string, error) {
	f <- r.Header.Clone()
	return "", nil
}

// A signature is verified with the fields as received, even if the gateway changes them to
// insert links.
func TestEventsOfSignedFields(t *testing.T) {
	seen := make(fields, 1)
	g, _ := recorded(t, Options{Access: access.Options{Agents: seen}})
	sent := []string{"User-Agent", gptBot, "Signature", "x", "Range", "bytes=0-1", "If-None-Match", `"a", "b"`}
	if w := ask(g, "GET", "/a/", sent...); w.Code != 206 {
		t.Fatalf("%d", w.Code)
	}
	got := <-seen
	for i := 0; i < len(sent); i += 2 {
		if got.Get(sent[i]) != sent[i+1] {
			t.Errorf("%s is %q", sent[i], got[sent[i]])
		}
	}
}

// A response that breaks off causes a failure event. A long response causes its event when it
// ends.
func TestEventsOfBrokenAnswers(t *testing.T) {
	g, eventLog := recorded(t, Options{})
	r := httptest.NewRequest(http.MethodGet, "/llm-pages.json", nil)
	r.Header.Set("User-Agent", gptBot)
	g.ServeHTTP(&droppedClient{header: make(http.Header)}, r)
	got := eventLog.last()
	if len(got) != 1 || got[0].Status != 0 || store.OutcomeOf(got[0].Status) != store.Failed || got[0].Protocol != "tct-01" {
		t.Errorf("%+v", got)
	}
	for _, target := range []string{"/a/", "/style.css", "/robots.txt", "/notes?url=/a/"} {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Header.Set("User-Agent", gptBot)
		g.ServeHTTP(&droppedClient{header: make(http.Header)}, r)
		if got := eventLog.last(); len(got) != 1 || got[0].Status != 0 {
			t.Errorf("%s: %+v", target, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/notes/events", nil))
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/notes/events", nil)
		r.Header.Set("User-Agent", gptBot)
		g.ServeHTTP(httptest.NewRecorder(), r)
	}()
	cancel()
	<-done
	if got := eventLog.last(); len(got) != 1 || got[0].Protocol != "notes" || got[0].Endpoint != store.EndpointIndex {
		t.Errorf("%+v", got)
	}
	ask(g, "POST", "/notes/update", "User-Agent", gptBot)
	if got := eventLog.last(); len(got) != 0 {
		t.Errorf("an update causes an event: %+v", got)
	}
}

// droppedClient is a client that disconnects in the middle of the body.
type droppedClient struct{ header http.Header }

func (b *droppedClient) Header() http.Header       { return b.header }
func (b *droppedClient) WriteHeader(int)           {}
func (b *droppedClient) Write([]byte) (int, error) { return 1, http.ErrHandlerTimeout }

// In front of a site, the site's pages cause page events, even with a query. Errors of the site's
// server cause failure events.
func TestEventsInFront(t *testing.T) {
	eventLog := &events{new: make(chan struct{}, 1)}
	one := page("/?p=7", "Seven")
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/image.png":
			w.Header().Set("Content-Type", "image/png")
		case "/cut":
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/down":
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Etag", `"1"`)
			if strings.Contains(r.Header.Get("If-None-Match"), `"1"`) {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		_, _ = w.Write([]byte("<html><head></head><p>A page."))
	}), proxy.Options{}, setup{pages: []*millrace.Page{page("/", "Home"), one}, o: Options{Events: eventLog, Access: access.Options{Bots: known(t)}}}, nil)
	for _, tt := range []struct {
		target string
		fields []string
		path   string
		kind   store.Endpoint
		status int
	}{
		{"/", nil, "/", store.EndpointFetch, 200},
		{"/?p=7", nil, "/?p=7", store.EndpointFetch, 200},
		{"/?p=7&utm=1", nil, "/", store.EndpointFetch, 200},
		{"/other?x=1", nil, "/other", store.EndpointFetch, 200},
		{"/other", []string{"If-None-Match", `"1"`}, "/other", store.EndpointFetch, 304},
		{"/image.png", nil, "/image.png", store.EndpointFile, 200},
		{"/cut", nil, "/cut", store.EndpointFetch, 0},
		{"/down", nil, "/down", store.EndpointFetch, 502},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+tt.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", gptBot)
		for i := 0; i < len(tt.fields); i += 2 {
			r.Header.Set(tt.fields[i], tt.fields[i+1])
		}
		resp, err := plainClient(t).Do(r)
		var body []byte
		switch {
		case err == nil:
			body, _ = io.ReadAll(resp.Body) // one response is cut off
			_ = resp.Body.Close()
		case tt.status != 0:
			t.Fatal(err)
		}
		<-eventLog.new
		e := eventLog.last()[0]
		if e.Protocol != "html" || e.Path != tt.path || e.Endpoint != tt.kind || e.Status != tt.status || e.Cached != (tt.status == 304) {
			t.Errorf("%s: %+v", tt.target, e)
		}
		if e.Status == 200 && (e.Bytes != int64(len(body)) || e.Size != e.Bytes) {
			t.Errorf("%s: %d bytes cause the event %+v", tt.target, len(body), e)
		}
	}
}
