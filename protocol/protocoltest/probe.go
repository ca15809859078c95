package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// Limits of a probe, and the permitted deviation of its figures from the actual cost. The deviation
// is a factor plus a constant. The constant covers the documents of a small site that are not
// pages.
const (
	probeRequests = 12
	probeFactor   = 1.6
	slackBytes    = 2 << 10
	slackAsked    = 2
)

// Probe compares a protocol's estimate for a site with the cost of reading it, and checks that a
// hostile server causes little cost. o are the options of the publisher.
func Probe(t *testing.T, p protocol.Protocol, o *protocol.PublisherOptions) {
	t.Run("costs", func(t *testing.T) { probeCosts(t, p, o) })
	for name, h := range hostile() {
		t.Run(name, func(t *testing.T) { probeHostile(t, p, h) })
	}
}

// meter counts the requests to a server and the bytes of its bodies. It ignores robots.txt, which
// costs the same for every protocol.
type meter struct {
	http.Handler
	requests, bytes atomic.Int64
	running         sync.RWMutex // read-locked by each response
}

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.running.RLock()
	defer m.running.RUnlock()
	if r.URL.Path != "/robots.txt" {
		m.requests.Add(1)
		w = &meteredWriter{w, m}
	}
	m.Handler.ServeHTTP(w, r)
}

// spent returns the counts since the last call. It waits until all responses have ended, because a
// client that reads only the beginning of a response is ahead of the server.
func (m *meter) spent() protocol.Cost {
	m.running.Lock()
	defer m.running.Unlock()
	return protocol.Cost{Requests: m.requests.Swap(0), Bytes: m.bytes.Swap(0)}
}

type meteredWriter struct {
	http.ResponseWriter
	m *meter
}

func (w *meteredWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.m.bytes.Add(int64(n))
	return n, err
}

// Unwrap supports [http.ResponseController].
func (w *meteredWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// similarPages returns the pages of a site, which are of similar size, each with its own text.
func similarPages(n int, at time.Time) []*millrace.Page {
	g := rand.New(rand.NewPCG(uint64(n), 7))
	words := strings.Fields("mill race water wheel stone grain sluice gate pond weir meal sack dust beam shaft gear tooth cog axle flow bank reed stream")
	text := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%s%d ", words[g.IntN(len(words))], g.IntN(500))
		}
		return strings.TrimSpace(b.String()) + "."
	}
	var pages []*millrace.Page
	for i := range n {
		p := &millrace.Page{
			URL: fmt.Sprintf("/part%d/page%d", i%4, i), Title: "Page " + text(3), Description: text(12), Language: "en",
			Kind: millrace.Article, Modified: at, Published: at.AddDate(0, 0, -i), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
		}
		if i == 0 {
			p.URL = "/"
		}
		for range 4 + g.IntN(4) {
			p.Blocks = append(p.Blocks,
				millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: text(3)},
				millrace.Block{Type: millrace.TextBlock, Text: text(40 + g.IntN(40))})
		}
		pages = append(pages, p)
	}
	return pages
}

// revise returns the pages after an edit: n pages have more text, and the last pages are deleted.
func revise(pages []*millrace.Page, n, deleted int, at time.Time) []*millrace.Page {
	out := slices.Clone(pages[:len(pages)-deleted])
	for i := range n {
		k := 1 + i*(len(out)-1)/n
		p := out[k].Clone()
		p.Blocks[1].Text += fmt.Sprintf(" This was added at %s.", at.Format(time.RFC3339Nano))
		p.Modified = at
		out[k] = p
	}
	return out
}

func probeCosts(t *testing.T, p protocol.Protocol, o *protocol.PublisherOptions) {
	const n, changed = 240, 6
	client := fetch.New(&fetch.Options{AllowPrivate: true})
	t.Cleanup(client.CloseIdleConnections)
	now := time.Now().UTC().Truncate(time.Second)
	at := now.Add(-52 * time.Hour) // documents by day must contain only the first pages, at any time of day
	srv := Serve(p, o)
	srv.Now = at
	m := &meter{Handler: srv}
	h := httptest.NewServer(m)
	t.Cleanup(h.Close)
	pages := similarPages(n, at)
	v := NewView(millrace.Site{Base: h.URL + "/"}, pages, p.Tagger)
	show := func(at time.Time) {
		t.Helper()
		srv.Now = at
		if err := srv.Show(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	next := func(at time.Time, deleted int) {
		t.Helper()
		pages = revise(pages, changed, deleted, at)
		v = v.Next(at, pages, p.Tagger)
		show(at)
	}
	show(at)
	next(at.Add(26*time.Hour), 2) // documents of changes must not be empty
	copied := &mirror{refs: map[string]millrace.Ref{}, pages: map[string]*millrace.Page{}}
	offer, err := p.Probe(t.Context(), client.HTTP(), h.URL+"/part1/page1", nil)
	if err != nil {
		t.Fatal(err)
	}
	took := m.spent()
	took.Bytes = client.Stats().BodyBytes // exclude bytes that are still in transfer
	sync := func() protocol.Cost {
		t.Helper()
		copied.sync(t, p.NewReader(client.HTTP(), h.URL, nil))
		return m.spent()
	}
	first, still := sync(), sync()
	t.Logf("the probe used %+v and found %+v", took, *offer)
	if took.Requests > probeRequests || took.Bytes > first.Bytes/2 {
		t.Errorf("the probe used %+v; a full read used %+v", took, first)
	}
	known, carried := millrace.Fields(0), 0
	for _, page := range copied.pages {
		known |= page.Known
		if page.Detail != offer.Detail {
			t.Errorf("offer has Detail %d; %s has %d", offer.Detail, page.URL, page.Detail)
			break
		}
		carried++
	}
	off := 0
	if offer.Estimated {
		off = carried / 10
	}
	if offer.Pages < carried-off || offer.Pages > carried+off || offer.WithoutContent != 0 || offer.Fields != known {
		t.Errorf("the offer has %d pages, %d without content, and the fields %b; want %d pages with the fields %b", offer.Pages, offer.WithoutContent, offer.Fields, carried, known)
	}
	near(t, "First", offer.First, first)
	near(t, "Still", offer.Unchanged, still)
	deleted := 0 // without Deletes, a refresh after a deletion is not estimated
	if offer.Deletes {
		deleted = 2
	}
	next(at.Add(50*time.Hour), deleted)
	moved := sync()
	near(t, "Moved and Each", offer.Changed.Add(offer.PerChange, changed), moved)
	if len(copied.pages) != carried-deleted {
		t.Errorf("a refresh after %d deletions left %d of %d pages", deleted, len(copied.pages), carried)
	}
}

// near reports an error if an estimate is not close to the actual cost.
func near(t *testing.T, what string, estimate, is protocol.Cost) {
	t.Helper()
	t.Logf("%s: estimated %+v, actual %+v", what, estimate, is)
	if math.Abs(float64(estimate.Requests-is.Requests)) > slackAsked+float64(is.Requests)/10 {
		t.Errorf("%s: estimated %d requests, actual %d", what, estimate.Requests, is.Requests)
	}
	a, b := float64(estimate.Bytes)+slackBytes, float64(is.Bytes)+slackBytes
	if a > probeFactor*b || b > probeFactor*a {
		t.Errorf("%s: estimated %d bytes, actual %d", what, estimate.Bytes, is.Bytes)
	}
}

// hostile returns servers with useless responses, each with the expected error, or nil for any.
func hostile() map[string]hostileServer {
	text := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Add("Link", `</x.json>; rel="index"; type="application/json"`)
			_, _ = io.WriteString(w, body)
		}
	}
	endless := func(kind, head, more string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Add("Link", `</x.json>; rel="index"; type="application/json"`)
			_, err := io.WriteString(w, head)
			for more := strings.Repeat(more, 1000); err == nil; {
				_, err = io.WriteString(w, more)
			}
		}
	}
	return map[string]hostileServer{
		"nothing there":      {http.NotFound, millrace.ErrNotFound},
		"another format":     {text("image/png", "\x89PNG\r\n\x1a\n"), nil},
		"HTML for anything":  {text("text/html", "<!DOCTYPE html><title>Soft</title><p>There is no such page, and we say 200."), nil},
		"JSON for anything":  {text("application/json", `{"items":{},"pages":7,"feed":[],"version":{}}`), nil},
		"endless XML":        {endless("application/xml", `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`, "<url><loc>http://x.test/</loc></url>\n"), nil},
		"endless list":       {endless("application/json", `{"version":1,"arc_sitemap_version":"2.1","items":[{}`, `,{"cUrl":"http://x.test/a","mUrl":"http://y.test/b"}`), nil},
		"endless text":       {endless("application/json", `{"version":"`, "x"), nil},
		"slow":               {slow, nil},
		"broken off":         {brokenOff, nil},
		"unavailable always": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotImplemented) }, nil},
	}
}

type hostileServer struct {
	http.HandlerFunc
	err error
}

func slow(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for {
		if _, err := io.WriteString(w, "{"); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func brokenOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"version":1,"items":[`)
	panic(http.ErrAbortHandler)
}

// probeHostile checks that a probe fails quickly, after a limited number of bytes and requests.
func probeHostile(t *testing.T, p protocol.Protocol, h hostileServer) {
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true})
	t.Cleanup(client.CloseIdleConnections)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	offer, err := p.Probe(ctx, client.HTTP(), srv.URL, nil)
	if err == nil {
		t.Fatalf("unexpected offer: %+v", *offer)
	}
	if h.err != nil && !errors.Is(err, h.err) {
		t.Errorf("Probe returned an unexpected error: %v", err)
	}
	if took := client.Stats(); took.Requests > 40 || took.BodyBytes > 8<<20 {
		t.Errorf("Probe exceeds its limits: %d requests and %d bytes", took.Requests, took.BodyBytes)
	}
}

// FuzzProbe probes servers that send the same body for every request, and checks that the figures
// can be summed.
func FuzzProbe(f *testing.F, p protocol.Protocol, bodies ...string) {
	for i, b := range append(bodies, "{}", "<urlset>") {
		f.Add([]byte(b), uint8(i), int64(-1))
		f.Add([]byte(b), uint8(i+1), int64(1)<<60)
	}
	kinds := []string{"application/json", "application/xml", "text/html", "application/yaml"}
	f.Fuzz(func(t *testing.T, body []byte, kind uint8, length int64) {
		client := &http.Client{Transport: Transport(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			if r.URL.Path == "/robots.txt" {
				http.NotFound(w, r)
			} else {
				w.Header().Set("Content-Type", kinds[int(kind)%len(kinds)])
				w.Header().Set("Link", `</x.json>; rel="index"; type="application/json"`)
				_, _ = w.Write(body)
			}
			resp := w.Result()
			resp.Request = r
			if w.Code == http.StatusOK && length > int64(len(body)) {
				resp.ContentLength = length
			}
			return resp, nil
		})}
		o, err := p.Probe(t.Context(), client, "https://x.test/", nil)
		if err != nil {
			return
		}
		for _, c := range []protocol.Cost{o.First, o.Unchanged, o.Changed, o.PerChange} {
			if c.Requests < 0 || c.Bytes < 0 || c.Requests > 1<<50 || c.Bytes > 1<<61 {
				t.Errorf("%+v", *o)
			}
		}
		if o.Pages < -1 || o.WithoutContent < 0 || o.Pages >= 0 && o.WithoutContent > o.Pages || o.Entry == "" {
			t.Errorf("%+v", *o)
		}
	})
}
