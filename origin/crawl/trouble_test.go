package crawl

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// A bad page never affects other pages. It causes at most one line in the report.
func TestBadPages(t *testing.T) {
	large := func(n int) string {
		return "<!DOCTYPE html><title>Large</title><main><h1>Large</h1>" + strings.Repeat("<p>"+words("large")+"</p>\n", n/300) + "</main>"
	}
	quit := make(chan struct{})
	for _, c := range []struct {
		name string
		page http.HandlerFunc
		had  bool   // the page is stored nevertheless
		why  string // part of the reason; "" = the page is not reported
	}{
		{name: "a hang", page: func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-quit:
			}
		}, why: "timeout-total"},
		{name: "a drip", page: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					fmt.Fprint(w, "<")
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				case <-quit:
					return
				}
			}
		}, why: "timeout-total"},
		{name: "an error", page: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusInternalServerError) }, why: "http-500"},
		{name: "a teapot", page: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusTeapot) }, why: "http-418"},
		{name: "a status that there is not", page: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(999) }, why: "http-999"},
		{name: "a broken connection", page: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<p>short")
		}, why: "connection-closed"},
		{name: "gzip that is none", page: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "\x1f\x8bno")
		}, why: "coding-truncated"},
		{name: "plain text that claims gzip", page: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			html("Plain", words("plain"))(w, r)
		}, had: true},
		{name: "a gzip bomb", page: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/html")
			z := gzip.NewWriter(w)
			line := strings.Repeat("<p>", 1<<20)
			for range 100 {
				if _, err := io.WriteString(z, line); err != nil {
					return
				}
			}
			z.Close()
		}, why: "coding-ratio"},
		{name: "a header of 1 MB", page: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
			html("Long", words("long"))(w, r)
		}, why: "header-size"},
		{name: "a PDF that claims to be HTML", page: document("%PDF-1.7\n" + words("pdf")), why: "pdf"},
		{name: "an Office document", page: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.openxmlformats-officedocument.wordprocessingml.document")
			fmt.Fprint(w, "PK\x03\x04")
		}, why: "office-document"},
		{name: "a page that scripts draw", page: document(`<title>App</title><script type=module src=/a.js></script><div id=root></div>`), had: true, why: "script-wall"},
		{name: "a picture that claims to be HTML", page: document("\x89PNG\r\n\x1a\n" + words("png"))},
		{name: "a feed that claims to be HTML", page: document(`<?xml version="1.0"?><rss version="2.0"><channel/></rss>`)},
		{name: "binary that claims to be HTML", page: document("\x00\x01\x02\x03" + words("binary")), why: "binary"},
		{name: "HTML without a type", page: func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, doc("Untyped", words("untyped")))
		}, had: true},
		{name: "text without a type", page: func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, "Just text.")
		}},
		{name: "HTML that claims to be text", page: text(doc("Source", words("source")))},
		{name: "a page of 5 MB", page: document(large(5 << 20)), had: true},
		{name: "a page of 60 MB", page: document(large(60 << 20)), why: "page-size"},
		{name: "an empty page", page: document(""), why: "no-content"},
		{name: "a redirect to nowhere", page: redirect("ftp://elsewhere.invalid/"), why: "redirect-target"},
		{name: "a redirect without a target", page: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }, why: "http-302"},
		{name: "an unrequested 304", page: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, why: "http-304"},
		{name: "no-content", page: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		{name: "links that are none", page: document(head("Odd", `<base href="http://[">`, words("odd"), "http://[", "::", "//", "%zz", "javascript:x", "mailto:a@b.example", strings.Repeat("x", 10_000))), had: true},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.set("/", html("Home", words("home"), "/bad", "/good"))
			s.set("/good", html("Good", words("good")))
			s.set("/bad", c.page)
			m := newMill(t, s.URL+"/")
			o := &fetch.Options{AllowPrivate: true}
			if c.why == "timeout-total" { // the page never ends
				o.Timeout = 2 * time.Second
			}
			cl := fetch.New(o).HTTP()
			for i := range 2 {
				rep := m.run(m.through(cl, Options{}))
				want := []string{"/", "/good"}
				if c.had {
					want = []string{"/", "/bad", "/good"}
				}
				equal(t, "pages", m.pages(), want)
				got := reason(rep, "/bad")
				if i == 0 && got != c.why {
					t.Errorf("code %q, want %q", got, c.why)
				}
				if rep.SkippedN > 1 && c.name != "links that are none" { // two of them are links to unusual names
					t.Errorf("skipped: %v", rep.Skipped)
				}
			}
		})
	}
	t.Cleanup(func() { close(quit) })
}

// A problem with the root is the error of the run, with advice.
func TestBadRoots(t *testing.T) {
	other := newSite(t)
	other.set("/", html("Other", words("other")))
	for _, c := range []struct {
		name, root string
		site       func(s *site)
		status     int
		why        string
	}{
		{name: "gone", site: func(*site) {}, status: 404, why: "no-root"},
		{name: "forbidden", site: func(s *site) {
			s.set("/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
		}, status: 403, why: "http-403"},
		{name: "broken", site: func(s *site) {
			s.set("/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
		}, status: 503, why: "http-500"},
		{name: "elsewhere", site: func(s *site) { s.set("/", redirect(other.URL+"/")) }, status: 400, why: "site-moved"},
		{name: "above", root: "/blog/", site: func(s *site) { s.set("/blog/", redirect("/news/")) }, status: 400, why: "site-moved"},
		{name: "a loop", site: func(s *site) { s.set("/", redirect("/")) }, status: 400, why: "redirect-loop"},
		{name: "no HTML", site: func(s *site) { s.set("/", text("hello")) }, status: 400, why: "no-html"},
		{name: "empty", site: func(s *site) { s.set("/", document("")) }, status: 400, why: "no-content"},
		{name: "disallowed", site: func(s *site) {
			s.set("/", html("Home", words("home")))
			s.set("/robots.txt", text("User-agent: *\nDisallow: /"))
		}, status: 403, why: "robots-disallow"},
		{name: "no robots.txt to be had", site: func(s *site) {
			s.set("/", html("Home", words("home")))
			s.set("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
		}, status: 503, why: "robots-unavailable"},
		{name: "nothing behind it", site: func(s *site) { s.set("/", redirect("/en/")) }, status: 404, why: "no-page"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s := newSite(t)
			c.site(s)
			m := newMill(t, s.URL+"/")
			if c.root != "" {
				m.url = s.URL + c.root
			}
			_, err := m.try(m.open(Options{}))
			if millrace.Status(err) != c.status || millrace.ErrorCode(err) != c.why {
				t.Errorf("%d, %v: code %q, want %q", millrace.Status(err), err, millrace.ErrorCode(err), c.why)
			}
		})
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + ln.Addr().String() + "/"
	ln.Close()
	if _, err := newMill(t, dead).try(newMill(t, dead).open(Options{})); millrace.Status(err) != 503 || millrace.ErrorCode(err) != "connection-refused" {
		t.Errorf("a host that is down: %v", err)
	}
	// http redirects to https, on the usual ports.
	s := newSite(t)
	s.set("/", redirect("https://mill.example/"))
	cl := fetch.New(&fetch.Options{AllowPrivate: true, Delay: -1, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(s.URL, "http://"))
	}})
	m := newMill(t, "http://mill.example/")
	if _, err := m.try(m.through(cl.HTTP(), Options{})); millrace.ErrorCode(err) != "site-moved" {
		t.Errorf("http that redirects to https: %v", err)
	}
	c, err := New(nil, dead, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newMill(t, dead).try(c); millrace.Status(err) != 403 || millrace.ErrorCode(err) != "address-loopback" {
		t.Errorf("a private address with the default client: %v", err)
	}
}

// A site that stops responding ends the run. Its stored pages are kept.
func TestOutage(t *testing.T) {
	s := newSite(t)
	var links []string
	for i := range 100 {
		p := fmt.Sprintf("/p%d", i)
		links = append(links, p)
		s.set(p, html(p, words(p)))
	}
	s.set("/", html("Home", words("home"), links...))
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	for _, p := range links {
		s.set(p, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "out of order", http.StatusInternalServerError)
		})
	}
	s.asked()
	rep, err := m.try(m.open(Options{MaxTime: 20 * time.Second})) // too short to wait for the site
	if millrace.Status(err) != 503 || millrace.ErrorCode(err) != "too-many-failures" {
		t.Errorf("%v", err)
	}
	if n := len(s.asked()); n > 50 {
		t.Errorf("%d requests to a site that is down", n)
	}
	if len(m.pages()) != 101 || rep.Deleted > 0 {
		t.Errorf("%d pages remain", len(m.pages()))
	}
}

// isRefused reports whether an address was refused.
func isRefused(err error) bool {
	_, ok := errors.AsType[*fetch.AddressError](err)
	return ok
}

// During a crawl, the host name begins to resolve to a private address.
func TestRebinding(t *testing.T) {
	s := newSite(t)
	var links []string
	for i := range 200 {
		p := fmt.Sprintf("/p%d", i)
		links = append(links, p)
		s.set(p, html(p, words(p)))
	}
	s.set("/", html("Home", words("home"), links...))
	var flipped atomic.Bool
	guarded := fetch.New(&fetch.Options{AllowPrivate: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		if flipped.Load() { // the name now resolves to a private address
			return nil, &fetch.AddressError{Class: "metadata"}
		}
		return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(s.URL, "http://"))
	}})
	m := newMill(t, s.URL+"/")
	m.run(m.through(guarded.HTTP(), Options{}))
	var asked atomic.Int64
	s.set("/", func(w http.ResponseWriter, r *http.Request) { // connections are not reused
		w.Header().Set("Connection", "close")
		html("Home", words("home again"), links...)(w, r)
	})
	for _, p := range links {
		s.set(p, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) > 10 && flipped.Swap(true) {
				panic(http.ErrAbortHandler) // an older connection
			}
			guarded.CloseIdleConnections()
			w.Header().Set("Connection", "close")
			html(p, words(p))(w, r)
		})
	}
	_, err := m.try(m.through(guarded.HTTP(), Options{}))
	if !isRefused(err) {
		t.Errorf("%v", err)
	}
	if len(m.pages()) != 201 {
		t.Errorf("%d pages remain", len(m.pages()))
	}
}

func TestLongRobots(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/b"))
	s.set("/a", html("A", words("a")))
	s.set("/b", html("B", words("b")))
	s.set("/robots.txt", text("User-agent: *\nDisallow: /b\n"+strings.Repeat("# a line that says nothing\n", 10<<20/27)))
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a"})
}
