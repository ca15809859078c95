package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/dcz"
)

// heldDictionaries is a store in memory.
type heldDictionaries struct {
	mu      sync.Mutex
	indexes map[string]DictionaryIndex
	bodies  map[string][]byte
}

func (h *heldDictionaries) Index(_ context.Context, origin string) (DictionaryIndex, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.indexes[origin], nil
}

func (h *heldDictionaries) Update(_ context.Context, origin string, change func(*DictionaryIndex)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.indexes == nil {
		h.indexes, h.bodies = map[string]DictionaryIndex{}, map[string][]byte{}
	}
	ix := h.indexes[origin]
	change(&ix)
	h.indexes[origin] = ix
	return nil
}

func (h *heldDictionaries) Read(_ context.Context, _, match string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b, ok := h.bodies[match]; ok {
		return b, nil
	}
	return nil, millrace.ErrNotFound
}

func (h *heldDictionaries) Write(ctx context.Context, origin, match string, content []byte) error {
	_ = h.Update(ctx, origin, func(*DictionaryIndex) {})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bodies[match] = bytes.Clone(content)
	return nil
}

// index returns the only index.
func (h *heldDictionaries) index() DictionaryIndex {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ix := range h.indexes {
		return ix
	}
	return DictionaryIndex{}
}

// edition returns version n of a document of about 20 kB.
func edition(n int) []byte {
	var b bytes.Buffer
	for i := range 500 {
		fmt.Fprintf(&b, "<li>%x</li>\n", sha256.Sum256(fmt.Append(nil, i)))
	}
	fmt.Fprintf(&b, "<li>edition %d</li>\n", n)
	return b.Bytes()
}

// dczServer serves the current edition of one document at every path, coded against the
// edition that the client has.
type dczServer struct {
	mu    sync.Mutex
	now   int
	match string
	asked []string // per request: the edition that the client has, "none", or "plain"
	// spoil changes a coded response before it is sent, if not nil.
	spoil func(h http.Header, body []byte) []byte
}

func (s *dczServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, have := edition(s.now), -1
	id, ok := dcz.ParseField(r.Header.Get(dcz.Available))
	for n := range s.now + 1 {
		if ok && dcz.Sum(edition(n)) == id {
			have = n
		}
	}
	h := w.Header()
	h.Set(dcz.Use, s.match)
	switch accepts := strings.Contains(r.Header.Get("Accept-Encoding"), dcz.Name); {
	case !accepts:
		s.asked = append(s.asked, "plain"+r.Header.Get("Cache-Control"))
	case have < 0:
		s.asked = append(s.asked, "none"+r.Header.Get("Dictionary-ID"))
	default:
		s.asked = append(s.asked, fmt.Sprint(have, r.Header.Get("Dictionary-ID")))
		body, _ = new(dcz.Encoder).Encode(edition(have), dcz.Sum(edition(have)), body)
		h.Set("Content-Encoding", dcz.Name)
		digest := sha256.Sum256(body)
		h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest[:])+":")
		if s.spoil != nil {
			body = s.spoil(h, body)
		}
	}
	_, _ = w.Write(body)
}

func (s *dczServer) publish(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = n
}

// take returns the requests since the last call.
func (s *dczServer) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asked = nil }()
	return strings.Join(s.asked, " ")
}

// dczClient is a client with dictionaries, and the server of its requests.
type dczClient struct {
	t      *testing.T
	held   *heldDictionaries
	url    string
	client *Client
}

func newDCZ(t *testing.T, h http.Handler) *dczClient {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c := &dczClient{t: t, held: new(heldDictionaries), url: srv.URL}
	c.restart()
	return c
}

// restart continues with a new client, like another process.
func (c *dczClient) restart() {
	c.client = New(&Options{AllowPrivate: true, IgnoreRobots: true, Dictionaries: c.held})
	c.t.Cleanup(c.client.CloseIdleConnections)
}

func (c *dczClient) do(path string, header ...string) ([]byte, *http.Response, error) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := Do(c.t.Context(), c.client.HTTP(), req)
	if err != nil {
		return nil, nil, err
	}
	if resp.Request.Header.Get("Cache-Control") != req.Header.Get("Cache-Control") {
		c.t.Error("the response does not refer to the request")
	}
	body, err := ReadBody(resp, 0)
	return body, resp, err
}

func (c *dczClient) expect(path string, want []byte, header ...string) {
	c.t.Helper()
	if got, _, err := c.do(path, header...); err != nil || !bytes.Equal(got, want) {
		c.t.Errorf("%s: %d bytes, want %d: %v", path, len(got), len(want), err)
	}
}

// The content of a response becomes the dictionary for the next edition, even in another process.
// Only the changes are transferred.
func TestDictionary(t *testing.T) {
	t.Parallel()
	s := &dczServer{match: `match="/list-*.json", id="x\"y", match-dest=("document")`}
	c := newDCZ(t, s)
	c.expect("/list-0.json", edition(0))
	for n := range 3 {
		s.publish(n)
		c.restart()
		c.expect(fmt.Sprintf("/list-%d.json", n), edition(n))
		if got := c.client.Stats().BodyBytes; got > 200 {
			t.Errorf("edition %d: %d bytes", n, got)
		}
	}
	if got, want := s.take(), `none 0"x\"y" 0"x\"y" 1"x\"y"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if ix := c.held.index(); len(ix.Dictionaries) != 1 || ix.Dictionaries[0].Size != len(edition(2)) || ix.Dictionaries[0].Hash != dcz.Sum(edition(2)).Field() {
		t.Errorf("%+v", ix)
	}
	ctx, client := t.Context(), c.client.HTTP()
	if !HasDictionary(ctx, client, c.url+"/list-9.json?a") || HasDictionary(ctx, client, c.url+"/list") || HasDictionary(ctx, http.DefaultClient, c.url+"/list-9.json") {
		t.Error("Held")
	}
}

// Check sees the header of each response as received. A coded response that a second request replaces
// is not reported as broken.
func TestDictionaryCheck(t *testing.T) {
	t.Parallel()
	s := &dczServer{match: `match="/list"`}
	c := newDCZ(t, s)
	var checked []string
	broken := 0
	c.client = New(&Options{AllowPrivate: true, IgnoreRobots: true, Dictionaries: c.held, Check: func(resp *http.Response) (func(), error) {
		checked = append(checked, resp.Header.Get("Content-Encoding"))
		return func() { broken++ }, nil
	}})
	c.expect("/list", edition(0))
	s.publish(1)
	c.expect("/list", edition(1))
	s.spoil = func(_ http.Header, body []byte) []byte { return append(body, 'x') }
	s.publish(2)
	c.expect("/list", edition(2))
	if want := []string{"", "dcz", "dcz", ""}; !slices.Equal(checked, want) || broken > 0 {
		t.Errorf("%q, want %q; %d broken", checked, want, broken)
	}
}

// The coding is offered only if the specification allows it.
func TestDictionaryOffer(t *testing.T) {
	t.Parallel()
	s := &dczServer{match: `match="/*"`}
	c := newDCZ(t, s)
	c.expect("/", edition(0), "Authorization", "Bearer x")
	c.expect("/", edition(0), "Cookie", "x=y")
	c.expect("/", edition(0), "Range", "bytes=0-")
	c.expect("/", edition(0), "Accept-Encoding", "identity")
	if got := s.take(); got != "plain plain plain plain" || len(c.held.index().Dictionaries) != 0 {
		t.Errorf("%s; %+v", got, c.held.index())
	}
	c.expect("/", edition(0))
	c.expect("/", edition(0), "Authorization", "Bearer x")
	if got := s.take(); got != "none plain" {
		t.Error(got)
	}
	for raw, want := range map[string]bool{"https://x.test/": true, "http://x.test/": false, "http://127.0.0.1:1/": true} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, raw, http.NoBody)
		if got := c.client.offer(req) != nil; got != want {
			t.Errorf("%s: %v", raw, got)
		}
		if o := c.client.offer(req.WithContext(WithoutDictionaries(t.Context()))); (o != nil) != want || o != nil && o.held != nil {
			t.Errorf("%s without dictionaries", raw)
		}
		req.Method = http.MethodPost
		if c.client.offer(req) != nil {
			t.Errorf("POST %s", raw)
		}
	}
}

// Only complete, verified, public content of a minimum size is kept.
func TestDictionaryKept(t *testing.T) {
	t.Parallel()
	large := edition(0)
	for name, c := range map[string]struct {
		body   []byte
		header http.Header
		status int
		want   string
	}{
		"absolute":           {large, http.Header{dcz.Use: {`match="ORIGIN/a/*"`}}, 200, "/a/*"},
		"query":              {large, http.Header{dcz.Use: {`match="/a?b=*"`}}, 200, "/a?b=*"},
		"raw":                {large, http.Header{dcz.Use: {`type=raw, match="/a"`}}, 200, "/a"},
		"unknown member":     {large, http.Header{dcz.Use: {`match="/a";x=1, ttl=5`}}, 200, "/a"},
		"gzip":               {gzipped(large), http.Header{dcz.Use: {`match="/a"`}, "Content-Encoding": {"gzip"}}, 200, "/a"},
		"another type":       {large, http.Header{dcz.Use: {`match="/a", type=zstd`}}, 200, ""},
		"another origin":     {large, http.Header{dcz.Use: {`match="https://other.test/a"`}}, 200, ""},
		"another host":       {large, http.Header{dcz.Use: {`match="//other.test/a"`}}, 200, ""},
		"another port":       {large, http.Header{dcz.Use: {`match="ORIGIN1/a"`}}, 200, ""},
		"regular expression": {large, http.Header{dcz.Use: {`match="/(a|b)"`}}, 200, ""},
		"group":              {large, http.Header{dcz.Use: {`match="/:name"`}}, 200, ""},
		"modifier":           {large, http.Header{dcz.Use: {`match="/*?"`}}, 200, ""},
		"relative":           {large, http.Header{dcz.Use: {`match="a"`}}, 200, ""},
		"a token":            {large, http.Header{dcz.Use: {`match=/a`}}, 200, ""},
		"no match":           {large, http.Header{dcz.Use: {`id="x"`}}, 200, ""},
		"no field":           {large, http.Header{dcz.Use: {`match="/a`}}, 200, ""},
		"long":               {large, http.Header{dcz.Use: {`match="/` + strings.Repeat("a", 2000) + `"`}}, 200, ""},
		"no-store":           {large, http.Header{dcz.Use: {`match="/a"`}, "Cache-Control": {"No-Store"}}, 200, ""},
		"wrong digest":       {large, http.Header{dcz.Use: {`match="/a"`}, "Content-Digest": {"sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"}}, 200, ""},
		"not found":          {large, http.Header{dcz.Use: {`match="/a"`}}, 404, ""},
		"small":              {large[:minDictionary-1], http.Header{dcz.Use: {`match="/a"`}}, 200, ""},
		"cut":                {large[:6000], http.Header{dcz.Use: {`match="/a"`}, "Content-Length": {"7000"}}, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var self string
			d := newDCZ(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.header {
					w.Header().Set(k, strings.ReplaceAll(v[0], "ORIGIN", self))
				}
				w.WriteHeader(c.status)
				_, _ = w.Write(c.body)
			}))
			self = d.url
			_, _, _ = d.do("/a")
			var got string
			for _, h := range d.held.index().Dictionaries {
				got += h.Match
				if !bytes.Equal(d.held.bodies[h.Match], large) {
					t.Error("other content")
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// If a caller does not read to the end, or reads the coded body, nothing is kept.
func TestDictionaryUnread(t *testing.T) {
	t.Parallel()
	d := newDCZ(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(dcz.Use, `match="/"`)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped(edition(0)))
	}))
	for _, read := range []func(*http.Response) error{
		func(resp *http.Response) error {
			r, err := Decode(resp)
			if err == nil {
				_, err = io.CopyN(io.Discard, r, int64(len(edition(0))-1))
			}
			return err
		},
		func(resp *http.Response) error {
			resp.Header.Del("Content-Encoding")
			_, err := ReadBody(resp, 0)
			return err
		},
	} {
		resp, err := d.client.HTTP().Get(d.url)
		if err == nil {
			err = read(resp)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if held := d.held.index().Dictionaries; len(held) > 0 {
		t.Errorf("%+v", held)
	}
}

// The largest dictionaries are kept. The one with the longest pattern is offered; if several have
// it, the newest one.
func TestDictionaryMany(t *testing.T) {
	t.Parallel()
	d := newDCZ(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var size int
		_, _ = fmt.Sscanf(r.URL.RawQuery, "%d", &size)
		w.Header().Set(dcz.Use, fmt.Sprintf("match=%q", r.URL.Path))
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	}))
	for i := range maxDictionaries + 20 {
		_, _, err := d.do(fmt.Sprintf("/%d?%d", i, 5000+i))
		if err != nil {
			t.Fatal(err)
		}
	}
	_, _, _ = d.do("/small?4500")
	held := d.held.index().Dictionaries
	if len(held) != maxDictionaries || held[0].Match != "/20" || held[len(held)-1].Match != fmt.Sprintf("/%d", maxDictionaries+19) {
		t.Errorf("%d, %+v", len(held), held[0])
	}
	_ = d.held.Update(t.Context(), origin(mustParse(d.url)), func(ix *DictionaryIndex) {
		ix.Dictionaries = []Dictionary{{Hash: "1", Match: "/*"}, {Hash: "2", Match: "/a*"}, {Hash: "3", Match: "/*b"}, {Hash: "4", Match: "*"}}
	})
	d.restart()
	for path, want := range map[string]string{"/c": "1", "/ax": "2", "/ab": "3"} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, d.url+path, http.NoBody)
		if o := d.client.offer(req); o == nil || o.held == nil || o.held.Hash != want {
			t.Errorf("%s: %+v, want %s", path, o, want)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for pattern, urls := range map[string][]string{
		"/a":            {"/a", "/a?b"},
		"/a*":           {"/a", "/ab", "/a/b?c"},
		"/*.scp":        {"/.scp", "/scp/all-1.scp"},
		"/scp/all-*.x":  {"/scp/all-.x", "/scp/all-12.x"},
		"/a*b*c":        {"/abc", "/axbxbxc"},
		"/a?b=*":        {"/a?b=", "/a?b=1"},
		"/a?":           {"/a"},
		"/d%C3%BCss":    {"/d%C3%BCss"},
		"/a*a":          {"/aa", "/aba"},
		"/*/b":          {"//b", "/a/b"},
		"/**":           {"/", "/a"},
		"/never/either": nil,
	} {
		for _, u := range []string{
			"/a", "/a?b", "/ab", "/a/b?c", "/.scp", "/scp/all-1.scp", "/scp/all-.x", "/scp/all-12.x", "/abc", "/axbxbxc",
			"/a?b=", "/a?b=1", "/d%C3%BCss", "/aa", "/aba", "//b", "/a/b", "/",
		} {
			want := slices.Contains(urls, u)
			if got := matches(pattern, mustParse("https://x.test"+u)); got != want && (want || !strings.Contains(pattern, "*") && !strings.HasPrefix(u, "/a?")) {
				t.Errorf("%s %s: %v", pattern, u, got)
			}
		}
	}
	for pattern, u := range map[string]string{"/a*a": "/a", "/a*b*c": "/acb", "/a?b=*": "/a", "/a": "/ab", "/*.scp": "/a.scp.gz", "/x*xx": "/xx"} {
		if matches(pattern, mustParse("https://x.test"+u)) {
			t.Errorf("%s matches %s", pattern, u)
		}
	}
}
