package scp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// leadsTo is a transport that sends all requests to one server, whatever their host.
type leadsTo string

func (addr leadsTo) RoundTrip(r *http.Request) (*http.Response, error) {
	to := r.Clone(r.Context())
	to.URL.Scheme, to.URL.Host, to.Host = "http", string(addr), r.URL.Host
	resp, err := http.DefaultTransport.RoundTrip(to)
	if err == nil {
		resp.Request = r
	}
	return resp, err
}

// folder builds the documents of a server into a folder, and returns the hosts that serve it.
func (p *published) folder(t *testing.T) (hosts []*static.Host) {
	t.Helper()
	for _, host := range static.HostNames() {
		hosts = append(hosts, p.host(t, host))
	}
	return hosts
}

// host builds a folder for a host, and returns the host.
func (p *published) host(t *testing.T, name string) *static.Host {
	t.Helper()
	b, err := static.Open(t.TempDir(), "https://x.test/", atServer{p, t}, &static.Options{Host: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	ed := p.server.Current()
	for _, path := range append(ed.Large(), ed.ArtifactPaths()...) {
		if err := b.Add(t.Context(), static.Item{Path: path, Protocol: Name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(b.Report.LeftOut) > 0 {
		t.Errorf("left out: %+v", b.Report.LeftOut)
	}
	return b.Host()
}

// carried returns the pages of the site as the protocol carries them.
func (p *published) carried(t *testing.T) map[string]*millrace.Page {
	t.Helper()
	v, err := p.site.Pub.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*millrace.Page{}
	for page, err := range v.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if c := carry(v.Site(), page); c != nil {
			out[c.URL] = c
		}
	}
	return out
}

// readOf reads a server without a cursor.
func (p *published) readOf(t *testing.T, h http.Handler) (pages map[string]*millrace.Page, notes []string) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	src := NewReader(&http.Client{Transport: leadsTo(srv.Listener.Addr().String())}, "https://x.test/", &ReaderOptions{
		ReaderOptions: protocol.ReaderOptions{
			Note: func(n protocol.Note) { notes = append(notes, n.Rule+": "+n.Text) },
			Now:  func() time.Time { return p.now },
		},
	})
	pages = map[string]*millrace.Page{}
	for c, err := range src.Changes(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == millrace.Put {
			pages[c.URL] = c.Page
		}
	}
	return pages, notes
}

// The law holds for whole sites in a store, served by a server and from the folder of a static
// build on every host. The sites include a page of 1,500 blocks and one of almost 100 MB.
func TestLawLarge(t *testing.T) {
	p := publishing(t, nil)
	var batch []millrace.Change
	put := func(page *millrace.Page) {
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: page.URL}, Page: page})
	}
	seeds, size := uint64(testkit.Size(1, 1, 4)), testkit.Size(3_000_000, 3_000_000, 99_000_000)
	for seed := range seeds {
		for _, page := range protocoltest.Pages(10 + seed) {
			if page.URL != "/" {
				page.URL = fmt.Sprintf("/site%d", seed) + strings.ReplaceAll(page.URL, "://", "/")
			}
			put(page)
		}
	}
	many := &millrace.Page{URL: "/many", Title: "Many", Known: millrace.AllFields, Detail: millrace.DetailBlocks}
	for i := range 1500 {
		b := millrace.Block{Type: millrace.TextBlock, Text: fmt.Sprint("Paragraph ", i)}
		switch i % 5 {
		case 1:
			b = millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: fmt.Sprint("Heading ", i)}
		case 2:
			b = millrace.Block{Type: millrace.ImageBlock, URL: fmt.Sprintf("https://x.test/%d.png", i), Alt: fmt.Sprint("Image ", i)}
		case 3:
			b = millrace.Block{Type: millrace.ListBlock, Items: []millrace.Item{{Text: fmt.Sprint("Item ", i)}}}
		}
		many.Blocks = append(many.Blocks, b)
	}
	put(many)
	huge := noise(1 << 20)
	huge = strings.Repeat(huge, size/len(huge)+1)[:size]
	put(&millrace.Page{URL: "/huge", Title: "Huge", Blocks: millrace.TextBlocks(huge), Known: millrace.AllFields, Detail: millrace.DetailBlocks})
	if _, err := p.site.Apply(t.Context(), "test", batch); err != nil {
		t.Fatal(err)
	}
	text := p.publish(t)
	if n := strings.Count(text, `<scp:collection section="all"`); n != len(codings) {
		t.Errorf("%d snapshots of all pages", n)
	}
	want := p.carried(t)
	if n := len(want["https://x.test/many"].Blocks); n == 0 || n > maxBlocks {
		t.Errorf("%d of 1500 blocks", n)
	}
	if n := len(millrace.Text(want["https://x.test/huge"].Blocks)); n < size {
		t.Errorf("%d bytes of a page", n)
	}
	servers := map[string]http.Handler{"server": atServer{p, t}}
	for _, h := range p.folder(t) {
		if testing.Short() || h.Name == "nginx" || h.Name == "plain" { // the features of the other hosts are between these two
			servers[h.Name] = h
		}
	}
	for name, h := range servers {
		t.Run(name, func(t *testing.T) {
			got, notes := p.readOf(t, h)
			full := name == "server" || name == "nginx" || name == "caddy" // the other hosts do not support all header fields
			if full && len(notes) > 0 {
				t.Errorf("notes: %q", notes)
			}
			for u := range got {
				if want[u] == nil {
					t.Errorf("%s is not carried", u)
				}
			}
			for u, page := range want {
				if !cmp.Equal(page, got[u], cmpopts.IgnoreFields(millrace.Page{}, "Version"), cmpopts.EquateEmpty()) {
					t.Errorf("%s is read as another page", u)
				}
			}
		})
	}
}

// A coding is omitted if it makes a file more than 100 times smaller, because readers would
// refuse the file as a decompression bomb.
func TestRatioOfOurs(t *testing.T) {
	p := publishing(t, nil)
	p.put(t, "/", "home", "/zeros", strings.Repeat("0", 4<<20))
	text := p.publish(t)
	if strings.Contains(text, ".scp.zst") || strings.Contains(text, ".scp.gz") || strings.Count(text, "<scp:collection") != 1 {
		t.Errorf("the sitemap names\n%.2000s", text)
	}
	pages, notes := p.readOf(t, atServer{p, t})
	if len(pages) != 2 || len(notes) > 0 {
		t.Errorf("%d pages, %q", len(pages), notes)
	}
	p.put(t, "/zeros", "not any more")
	p.now = p.now.Add(24 * time.Hour) // later than any rate limit for generating the snapshot again
	if text := p.publish(t); strings.Count(text, "<scp:collection") != len(codings) {
		t.Errorf("the sitemap names\n%.2000s", text)
	}
}
