package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
)

// asked counts the requests to paths.
type asked struct {
	mu sync.Mutex
	n  map[string]int
}

func (a *asked) add(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n == nil {
		a.n = map[string]int{}
	}
	a.n[r.URL.Path]++
}

func (a *asked) want(t *testing.T, want map[string]int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(want, a.n); diff != "" {
		t.Error(diff)
	}
	a.n = nil
}

func parse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRobotsAreObeyed(t *testing.T) {
	var asked asked
	dial := memory(t, func(w http.ResponseWriter, r *http.Request) {
		asked.add(r)
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = io.WriteString(w, "# all\nuser-agent: *\ndisallow: /private\ndisallow: /?q=\nuser-agent: own\ndisallow: /mine")
		case "/moved":
			http.Redirect(w, r, "/private/2", http.StatusFound)
		}
	})
	c := obedient(t, Options{Dial: dial})
	refused := func(c *Client, u, page string, line int, rule string) {
		t.Helper()
		_, err := fetchBody(t, c, u)
		wantErr(t, err, millrace.ErrForbidden, "")
		e, ok := errors.AsType[*RobotsError](err)
		if !ok {
			t.Fatal(err)
		}
		want := RobotsError{URL: page, Robots: "http://site.example/robots.txt", Line: line, Rule: rule}
		if diff := cmp.Diff(want, *e); diff != "" {
			t.Error(diff)
		}
	}
	refused(c, "http://site.example/private/1#x", "http://site.example/private/1", 3, "Disallow: /private")
	refused(c, "http://site.example/?q=1", "http://site.example/?q=1", 4, "Disallow: /?q=")
	refused(c, "http://site.example/moved", "http://site.example/private/2", 3, "Disallow: /private")
	for _, u := range []string{"http://site.example", "http://SITE.example:80/mine", "http://site.example/robots.txt"} {
		if _, err := fetchBody(t, c, u); err != nil {
			t.Error(err)
		}
	}
	asked.want(t, map[string]int{"/": 1, "/mine": 1, "/moved": 1, "/robots.txt": 2})
	if n := c.Stats().Requests; n != 5 {
		t.Errorf("%d requests counted", n)
	}
	// A refused request closes its body.
	body := &closer{Reader: strings.NewReader("x")}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://site.example/private", body)
	if _, err := c.RoundTrip(req); !errors.Is(err, millrace.ErrForbidden) || !body.closed {
		t.Errorf("closed: %t, %v", body.closed, err)
	}
	refused(obedient(t, Options{Dial: dial, UserAgent: "Own/2 (x)"}), "http://site.example/mine", "http://site.example/mine", 6, "Disallow: /mine")
	// Another port is another origin. A client that ignores robots.txt can still fetch it.
	asked.want(t, map[string]int{"/robots.txt": 1})
	if _, err := fetchBody(t, c, "http://site.example:8080/"); err != nil {
		t.Error(err)
	}
	asked.want(t, map[string]int{"/robots.txt": 1, "/": 1})
	c = newClient(t, Options{Dial: dial})
	if _, err := fetchBody(t, c, "http://site.example/private"); err != nil {
		t.Error(err)
	}
	asked.want(t, map[string]int{"/private": 1})
	if r, err := c.Robots(t.Context(), parse(t, "http://site.example/x")); err != nil || r.Allowed("/private") {
		t.Errorf("%+v, %v", r, err)
	}
	_, err := c.Robots(t.Context(), parse(t, "ftp://site.example/x"))
	wantErr(t, err, millrace.ErrInvalid, "bad-scheme")
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

// TestRobotsAnswers tests all kinds of responses for robots.txt. The page is fetched,
// disallowed by a rule, or unavailable.
func TestRobotsAnswers(t *testing.T) {
	const rules = "user-agent: *\ndisallow: /page"
	head := func(status string, fields ...string) string {
		return "HTTP/1.1 " + status + "\r\nConnection: close\r\n" + strings.Join(fields, "") + "\r\n"
	}
	to := func(u string) string { return head("302 x", "Location: "+u+"\r\n") }
	zeros := strings.Repeat("\n", 50<<20)
	const had, rule = "", "robots-disallow"
	for name, c := range map[string]struct {
		answer string // response to /robots.txt
		want   string // if empty, the page is returned; else text of the error
	}{
		"rules":                           {head("200 x") + rules, rule},
		"203":                             {head("203 x") + rules, rule},
		"204":                             {head("204 x"), had},
		"empty":                           {head("200 x"), had},
		"400":                             {head("400 x") + rules, had},
		"401":                             {head("401 x") + rules, had},
		"403":                             {head("403 x") + rules, had},
		"404":                             {head("404 x") + rules, had},
		"410":                             {head("410 x") + rules, had},
		"304 to an unconditional request": {head("304 x"), had},
		"429":                             {head("429 x"), "robots-unavailable"},
		"500":                             {head("500 x") + rules, "robots-unavailable"},
		"503":                             {head("503 x") + rules, "robots-unavailable"},
		"503, long":                       {head("503 x", "Retry-After: 3600\r\n"), "robots-unavailable"},
		"no answer":                       {"", "robots-unavailable"},
		"no HTTP":                         {"SSH-2.0-x\r\n", "robots-unavailable"},
		"login wall":                      {head("200 x", "Content-Type: text/plain\r\n") + "<!doctype html>\n" + rules, had},
		"rules as HTML":                   {head("200 x", "Content-Type: text/html\r\n") + rules, rule},
		"gzip":                            {head("200 x", "Content-Encoding: gzip\r\n") + encode(t, rules, "gzip"), rule},
		"Content-Encoding gzip without gzip data": {head("200 x", "Content-Encoding: gzip\r\n") + rules, rule},
		"gzip bomb":                  {head("200 x", "Content-Encoding: gzip\r\n") + encode(t, rules+zeros, "gzip"), rule},
		"broken gzip":                {head("200 x", "Content-Encoding: gzip\r\n") + encode(t, rules, "gzip")[:20], "robots-unavailable"},
		"10 MB":                      {head("200 x") + rules + "\n" + strings.Repeat("# 34567\n", 10<<20/8), rule},
		"10 MB, with Content-Length": {head("200 x", "Content-Length: 104857600\r\n") + rules + "\n" + strings.Repeat("# 34567\n", 1<<20/8), rule},
		"cut short":                  {head("200 x", "Content-Length: 1000\r\n") + rules, "robots-unavailable"},
		"digest":                     {head("200 x", "Content-Digest: "+sha256Digest("other")+"\r\n") + rules, "robots-unavailable"},
		"1 MB header":                {head("200 x", "X: "+strings.Repeat("x", 1<<20)+"\r\n") + rules, "robots-unavailable"},
		"moved":                      {to("/rules.txt"), rule},
		"moved away":                 {to("http://other.example/rules.txt"), rule},
		"5 redirects":                {to("/hop5"), rule},
		"6 redirects":                {to("/hop6"), had},
		"a loop":                     {to("/robots.txt"), had},
		"a loop of two":              {to("/hop"), had},
		"no location":                {head("302 x"), had},
		"no web":                     {to("ftp://site.example/"), had},
		"private address":            {to("http://10.0.0.1/robots.txt"), "robots-unavailable"},
		"300":                        {head("300 x") + rules, had},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pages := 0
				cl := obedient(t, Options{MaxBody: 1 << 20, MaxRatio: 10, Dial: raw(t, func(conn net.Conn, r *http.Request) {
					n := 0
					switch _, err := fmt.Sscanf(r.URL.Path, "/hop%d", &n); {
					case r.URL.Path == "/robots.txt":
						say(conn, c.answer)
					case err == nil && n > 1:
						say(conn, to(fmt.Sprintf("/hop%d", n-1)))
					case err == nil, r.URL.Path == "/rules.txt":
						say(conn, head("200 x")+rules)
					case r.URL.Path == "/hop":
						say(conn, to("/robots.txt"))
					default:
						pages++
						say(conn, head("200 x")+"page")
					}
				})})
				for range 2 { // the second time from the cache
					before := cl.Stats().Requests
					body, err := fetchBody(t, cl, "http://site.example/page")
					switch c.want {
					case had:
						if err != nil || body != "page" {
							t.Errorf("%q, %v", body, err)
						}
					case rule:
						wantErr(t, err, millrace.ErrForbidden, c.want)
					default:
						wantErr(t, err, millrace.ErrUnavailable, c.want)
						if errors.Is(err, millrace.ErrForbidden) || errors.Is(err, millrace.ErrInvalid) {
							t.Errorf("%v does not only wrap ErrUnavailable", err)
						}
					}
					if n := cl.Stats().Requests - before; before > 0 && n > 1 {
						t.Errorf("%d requests the second time", n)
					}
				}
				if want := map[bool]int{true: 2}[c.want == had]; pages != want {
					t.Errorf("%d pages were requested, want %d", pages, want)
				}
			})
		})
	}
}

// If robots.txt times out, it is requested once, not for every page.
func TestRobotsThatHang(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		took   time.Duration
		text   string
	}{
		"no answer":       {"", firstByteTimeout, "robots-unavailable"},
		"a byte a second": {"HTTP/1.1 200 OK\r\n\r\n", time.Minute, "robots-unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := obedient(t, Options{Dial: raw(t, func(conn net.Conn, _ *http.Request) {
					for say(conn, c.answer); ; {
						time.Sleep(time.Second)
						if _, err := conn.Write([]byte("x")[:min(1, len(c.answer))]); err != nil || c.answer == "" {
							time.Sleep(time.Hour)
							return
						}
					}
				})})
				began := time.Now()
				for range 3 {
					_, err := fetchBody(t, cl, "http://site.example/page")
					wantErr(t, err, millrace.ErrUnavailable, c.text)
				}
				if took := time.Since(began); took != c.took || cl.Stats().Requests != 1 {
					t.Errorf("%d requests in %s, want 1 in %s", cl.Stats().Requests, took, c.took)
				}
				time.Sleep(2 * time.Hour) // so that the servers end
			})
		})
	}
}

// An address that is refused for robots.txt is reported as the page's refused address.
func TestRobotsOfARefusedAddress(t *testing.T) {
	c := New(nil)
	defer c.CloseIdleConnections()
	for range 2 {
		_, err := fetchBody(t, c, "http://127.0.0.1:9/page")
		wantErr(t, err, millrace.ErrForbidden, "address-loopback")
	}
}

// A Crawl-delay sets the gap between pages if it is longer than Delay.
func TestCrawlDelay(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want time.Duration // total for robots.txt and three pages
	}{
		"none":    {Options{Delay: -1}, 20 * time.Second},
		"shorter": {Options{Delay: time.Second}, 21 * time.Second},
		"longer":  {Options{Delay: 20 * time.Second}, 60 * time.Second},
		"ignored": {Options{Delay: time.Second, IgnoreRobots: true}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.o.Dial = memory(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/robots.txt" {
						_, _ = io.WriteString(w, "user-agent: *\ncrawl-delay: 10")
					}
				})
				cl := New(&c.o)
				defer cl.CloseIdleConnections()
				began := time.Now()
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						if _, err := fetchBody(t, cl, "http://site.example/"); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if took := time.Since(began); took != c.want {
					t.Errorf("took %s, want %s", took, c.want)
				}
			})
		})
	}
}

func TestRobotsOf(t *testing.T) {
	var asked asked
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch asked.add(r); r.URL.Path {
		case "/robots.txt":
			http.Redirect(w, r, "/rules", http.StatusMovedPermanently)
		case "/rules":
			_, _ = io.WriteString(w, "user-agent: millrace\ndisallow: /a\nsitemap: /s")
		}
	}
	c, base := loopback(t, handler)
	u := parse(t, base+"/x?y")
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for name, want := range map[string]int{"plain": 2, "ours": 1} {
		client := map[string]*http.Client{"plain": plain, "ours": c.HTTP()}[name]
		for range 2 {
			r, err := RobotsOf(t.Context(), client, u)
			if err != nil || r.Allowed("/a") || !r.Allowed("/b") || fmt.Sprint(r.Sitemaps()) != "[/s]" {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		asked.want(t, map[string]int{"/robots.txt": want, "/rules": want})
	}
	keyed := WithKeys(c.HTTP(), func(string) string { return "k" })
	if r, err := RobotsOf(t.Context(), keyed, u); err != nil || r.Allowed("/a") {
		t.Errorf("with keys: %+v, %v", r, err)
	}
	asked.want(t, nil) // the same cache
	if plain.CheckRedirect != nil {
		t.Error("the caller's client was changed")
	}
	_, err := RobotsOf(t.Context(), plain, parse(t, "file:///x"))
	wantErr(t, err, millrace.ErrInvalid, "bad-scheme")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = RobotsOf(ctx, plain, u)
	wantErr(t, err, context.Canceled, "")
}

// The cache stays bounded for any number of hosts.
func TestRobotsOfManyHosts(t *testing.T) {
	large := "user-agent: *\ndisallow: /x\n" + strings.Repeat("# 34567\n", 450<<10/8)
	body := "user-agent: *\ndisallow: /x"
	c := obedient(t, Options{Dial: memory(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })})
	for i := range 3 * manyRobots {
		if i == 2*manyRobots {
			body = large
		}
		r, err := c.Robots(t.Context(), parse(t, fmt.Sprintf("http://h%d.example/", i)))
		if err != nil || r.Allowed("/x") {
			t.Fatal(err)
		}
		if n := len(c.robots.origins); n > manyRobots || c.robots.size > manyRobotsText+maxRobots {
			t.Fatalf("%d origins, %d bytes", n, c.robots.size)
		}
		c.CloseIdleConnections()
	}
	size := 0
	for _, e := range c.robots.origins {
		size += e.rec.len()
	}
	if size != c.robots.size {
		t.Errorf("%d bytes, counted as %d", size, c.robots.size)
	}
}
