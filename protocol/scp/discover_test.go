package scp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/protocol"
)

// The sitemap is found by its name, by robots.txt, and by indexes.
func TestDiscover(t *testing.T) {
	const pages = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://example.com/</loc></url></urlset>`
	index := func(urls ...string) []byte {
		var b bytes.Buffer
		b.WriteString(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for _, u := range urls {
			b.WriteString("<sitemap><loc>" + sitemap.Escape(u) + "</loc></sitemap>")
		}
		b.WriteString("</sitemapindex>")
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		files func(h *host, offers []byte)
		asked string
	}{
		"robots.txt": {func(h *host, offers []byte) {
			h.put("/robots.txt", []byte("Sitemap: "+h.url+"pages.xml\nSitemap: /other.xml\n"))
			h.put("/pages.xml", []byte(pages))
			h.put("/other.xml", offers)
		}, "404 /sitemap.xml\n200 /pages.xml\n200 /other.xml"},
		"an index": {func(h *host, offers []byte) {
			h.put("/sitemap.xml", index("/one.xml", h.url+"two.xml", "https://example.com/no.xml"))
			h.put("/one.xml", []byte(pages))
			h.put("/two.xml", offers)
		}, "200 /sitemap.xml\n200 /one.xml\n200 /two.xml"},
		"an index of indexes": {func(h *host, offers []byte) {
			h.put("/robots.txt", []byte("Sitemap: "+h.url+"top.xml\n"))
			h.put("/top.xml", index("/top.xml", "/middle.xml"))
			h.put("/middle.xml", index("/top.xml", "/last.xml"))
			h.put("/last.xml", offers)
		}, "404 /sitemap.xml\n200 /top.xml\n200 /middle.xml\n200 /last.xml"},
		"behind a page of HTML": {func(h *host, offers []byte) {
			h.put("/robots.txt", []byte("Sitemap: "+h.url+"s.xml\n"))
			h.put("/sitemap.xml", []byte("<!DOCTYPE html><p>not found"))
			h.put("/s.xml", offers)
		}, "200 /sitemap.xml\n200 /s.xml"},
		"behind a sitemap that is forbidden": {func(h *host, offers []byte) {
			h.put("/robots.txt", []byte("Sitemap: "+h.url+"s.xml\n"))
			h.put("/sitemap.xml", nil).answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
			h.put("/s.xml", offers)
		}, "403 /sitemap.xml\n200 /s.xml"},
		"compressed": {func(h *host, offers []byte) {
			h.put("/robots.txt", []byte("Sitemap: "+h.url+"s.xml.gz\n"))
			h.put("/s.xml.gz", zipped(offers), "Content-Encoding", "")
		}, "404 /sitemap.xml\n200 /s.xml.gz"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			offers := sitemapOf(h.collection("all.scp", day(5, 0), time.Time{}, "/a"))
			c.files(h, offers)
			f := follow(h)
			f.expect(t, "put /a\nmark whole", c.asked+"\n200 /all.scp")
			// After that, only that sitemap is requested.
			last := c.asked[strings.LastIndexByte(c.asked, '/'):]
			f.expect(t, "mark", "304 "+last+" if new")
			// If it no longer exists, discovery starts again.
			delete(h.files, last)
			h.put("/robots.txt", nil)
			h.put("/sitemap.xml", offers)
			f.expect(t, "mark", "404 "+last+" if new\n200 /sitemap.xml")
		})
	}
}

// A site without SCP and a site with a broken sitemap return different errors.
func TestNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		files func(h *host)
		kind  error
		want  string
	}{
		"nothing": {func(*host) {}, millrace.ErrNotFound, "not-found"},
		"a sitemap without": {func(h *host) {
			h.put("/sitemap.xml", []byte(`<urlset><url><loc>https://example.com/</loc></url></urlset>`))
		}, millrace.ErrNotFound, "not-found"},
		"a broken sitemap without": {func(h *host) { h.put("/sitemap.xml", []byte(`<urlset><url>`)) }, millrace.ErrNotFound, "not-found"},
		"many sitemaps": {func(h *host) {
			h.put("/sitemap.xml", nil).answer = func(w http.ResponseWriter, _ *http.Request) {
				var b strings.Builder
				for i := range 2000 {
					fmt.Fprintf(&b, "<sitemap><loc>/%d.xml</loc></sitemap>", i)
				}
				_, _ = w.Write([]byte("<sitemapindex>" + b.String() + "</sitemapindex>"))
			}
		}, millrace.ErrNotFound, "not-found"},
		"out of order": {func(h *host) {
			h.put("/sitemap.xml", nil).answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
		}, millrace.ErrUnavailable, "http-500"},
		"a higher version": {func(h *host) {
			h.put("/sitemap.xml", bytes.Replace(sitemapOf(h.collection("all.scp", day(5, 0), time.Time{}, "/a")), []byte("0.1<"), []byte("1.0<"), 1))
		}, millrace.ErrInvalid, "scp/discovery-via-sitemap /sitemap.xml line 3"},
		"nothing that can be read": {func(h *host) {
			h.put("/sitemap.xml", sitemapOf(`<scp:collection section="all" type="snapshot" url="/x" generated="soon"/>`))
		}, millrace.ErrInvalid, "scp/sitemap/date-time /sitemap.xml"},
		"sections that are not wanted": {func(h *host) {
			h.offers(h.collection("all-delta.scp", day(5, 0), day(4, 0), "/a"))
		}, millrace.ErrNotFound, "not-found"},
		"cut": {func(h *host) {
			h.put("/sitemap.xml", nil).answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10000")
				_, _ = w.Write(sitemapOf(h.collection("all.scp", day(5, 0), time.Time{}, "/a")))
			}
		}, millrace.ErrUnavailable, "unavailable"},
		"broken among the elements": {func(h *host) {
			h.put("/sitemap.xml", bytes.Replace(sitemapOf(h.collection("all.scp", day(5, 0), time.Time{}, "/a")), []byte("<url>"), []byte("</urlse>"), 1))
		}, millrace.ErrInvalid, "xml-syntax /sitemap.xml line 5"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			c.files(h)
			f := follow(h)
			got, asked := f.read(t)
			if got != "error: "+c.want || len(asked) > maxSitemaps {
				t.Errorf("%s\nwant %s\n%s", got, c.want, asked)
			}
			for _, err := range NewReader(&http.Client{}, h.url, nil).Changes(t.Context(), "") {
				if !errors.Is(err, c.kind) {
					t.Errorf("%v is not %v", err, c.kind)
				}
			}
		})
	}
}

// Errors after the SCP elements do not matter (see the schema of sitemaps.org).
func TestBrokenAfterTheElements(t *testing.T) {
	h := newHost(t)
	b := sitemapOf(h.collection("all.scp", day(5, 0), time.Time{}, "/a"))
	h.put("/sitemap.xml", append(b[:len(b)-len("</urlset>")], "<url><loc>https://example.com/?a=\x00</loc>"...))
	f := follow(h)
	f.expect(t, "put /a\nmark whole", "200 /sitemap.xml\n200 /all.scp")
	f.expectNotes(t, "discovery/valid")
}

// readOffer reads the SCP elements of a sitemap with the URL https://example.com/sitemap.xml.
func readOffer(doc []byte) (*offer, []string, error) {
	var notes []string
	r := newReader(nil, "https://example.com/", &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Note: func(n protocol.Note) { notes = append(notes, n.Text) }}})
	run := &run{reader: r, now: day(20, 12)}
	base, err := url.Parse("https://example.com/sitemap.xml")
	if err != nil {
		return nil, nil, err
	}
	or := &offerReader{run: run, base: base}
	for _, err := range sitemap.Parse(bytes.NewReader(doc), &sitemap.Options{Extension: namespace, Element: or.element}) {
		if err != nil {
			return nil, notes, err
		}
	}
	return or.offer(), notes, nil
}

// The example of the specification, with elements in any order and in several codings.
func TestOffer(t *testing.T) {
	o, notes, err := readOffer(sitemapOf(
		`<scp:section name="all" updateFreq="daily" pages="~12000"/>`,
		`<scp:delta section="blog" period="day15" url="https://r2.example.com/d.scp.gz?x=.zst" generated="2000-01-15T23:00:00Z" expires="2000-01-17T00:00:00Z" pages="47" size="480000" since="2000-01-14T00:00:00Z"/>`,
		`<scp:collection section="blog" type="snapshot" url="https://r2.example.com/b.scp" generated="2000-01-15T00:00:00Z" expires="2000-01-16T00:00:00Z" pages="5247" size="152000000"/>`,
		`<scp:collection section="blog" type="snapshot" url="https://r2.example.com/b.scp.gz" generated="2000-01-15T01:00:00+01:00" expires="2000-01-17T00:00:00Z" pages="5247" size="52000000"/>`,
		`<scp:collection section="blog" type="snapshot" url="/b.scp.zst" generated="2000-01-15T00:00:00" expires="2000-01-16T00:00:00Z" size="-1"/>`,
		`<scp:collection section="blog" type="snapshot" url="/b.scp.zst" generated="2000-01-15T00:00:00Z" expires="2000-01-16T00:00:00Z" size="1"/>`,
		`<scp:collection section="blog" type="snapshot" url="old.scp" generated="2000-01-14T00:00:00.9Z" expires="2000-01-16T00:00:00Z" pages="x" size="x"/>`,
		`<scp:novelty/>`,
		`<scp:collection section="b log" type="snapshot" url="/x" generated="2000-01-15T00:00:00Z"/>`,
		`<scp:collection section="blog" type="full" url="/x" generated="2000-01-15T00:00:00Z"/>`,
		`<scp:collection section="blog" type="snapshot" generated="2000-01-15T00:00:00Z"/>`,
		`<scp:collection section="blog" type="snapshot" url="ftp://example.com/x" generated="2000-01-15T00:00:00Z"/>`,
		`<scp:collection section="blog" type="snapshot" url="http://example.com/x" generated="2000-01-15T00:00:00Z"/>`,
		`<scp:collection section="blog" type="snapshot" url="/x" generated="2026-03-20T12:11:00Z"/>`,
		`<scp:delta section="blog" url="/x" generated="2000-01-15T00:00:00Z"/>`,
		`<scp:version>x</scp:version>`,
	))
	if err != nil {
		t.Fatal(err)
	}
	at := func(d, h int) time.Time { return time.Date(2000, 1, d, h, 0, 0, 0, time.UTC) }
	want := []*offered{
		{section: "blog", generated: at(14, 0), expires: at(16, 0), pages: -1, files: []file{{url: "https://example.com/old.scp"}}},
		{section: "blog", generated: at(15, 0), expires: at(17, 0), pages: 5247, files: []file{
			{url: "https://example.com/b.scp.zst"}, {url: "https://r2.example.com/b.scp.gz", size: 52000000}, {url: "https://r2.example.com/b.scp", size: 152000000},
		}},
		{section: "blog", delta: true, since: at(14, 0), generated: at(15, 23), expires: at(17, 0), pages: 47, files: []file{{url: "https://r2.example.com/d.scp.gz?x=.zst", size: 480000}}},
	}
	if d := cmp.Diff(want, o.collections, cmp.AllowUnexported(offered{}, file{})); d != "" {
		t.Error(d)
	}
	if !o.flawed || len(notes) != 8 {
		t.Errorf("%d notes: %s", len(notes), strings.Join(notes, "\n"))
	}
}

func TestManyElements(t *testing.T) {
	_, _, err := readOffer(sitemapOf(strings.Repeat("<scp:section/>", maxElements)))
	if !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
}

// If the context is canceled, discovery returns the context's error.
func TestDiscoverCanceled(t *testing.T) {
	h := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.before = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done() // an immediate response could be read before the cancellation
		return true
	}
	for _, err := range NewReader(&http.Client{}, h.url, nil).Changes(ctx, "") {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// For any sitemap, the collections have the properties that offered documents.
func FuzzOffer(f *testing.F) {
	f.Add(sitemapOf(`<scp:collection section="all" type="snapshot" url="/a.scp" generated="2026-03-01T00:00:00Z" expires="2026-04-01T00:00:00Z" pages="1" size="2"/>`))
	f.Add(sitemapOf(`<scp:delta section="all" period="p" url="https://example.com/d.scp.gz" generated="2026-03-01T00:00:00.5+02:00" since="2026-02-01T00:00:00" expires="" pages="-1" size="9999999999999999999"/>`, `<scp:version> 0.2 </scp:version>`))
	f.Add(sitemapOf(`<scp:version>1.0</scp:version>`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		o, _, err := readOffer(doc)
		if err != nil {
			return
		}
		for i, c := range o.collections {
			if !isName(c.section) || len(c.files) == 0 || c.pages < -1 || c.generated.IsZero() || c.generated.After(day(20, 12).Add(skew)) ||
				c.delta == c.since.IsZero() || c.generated.Nanosecond() != 0 || c.generated.Year() > 9999 {
				t.Fatalf("%+v", c)
			}
			if i > 0 && (c.section < o.collections[i-1].section || c.section == o.collections[i-1].section && c.generated.Before(o.collections[i-1].generated)) {
				t.Fatalf("out of order: %+v", c)
			}
			for _, file := range c.files {
				if u, err := canon.URL(file.url); err != nil || u != file.url || file.size < 0 || !strings.HasPrefix(u, "https://") {
					t.Fatalf("%+v", file)
				}
			}
		}
	})
}
