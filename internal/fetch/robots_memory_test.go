package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
)

// server serves a robots.txt that the test can change.
type server struct {
	asked
	rules string // if empty, the status is 503
	etag  string
	date  string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/robots.txt" {
		return
	}
	s.add(r)
	if s.rules == "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	if s.date != "" {
		w.Header().Set("Last-Modified", s.date)
	}
	if s.etag != "" && r.Header.Get("If-None-Match") == s.etag || s.etag == "" && s.date != "" && r.Header.Get("If-Modified-Since") == s.date {
		r.URL.Path = "304"
		s.add(r)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, s.rules)
}

// allowed returns which of /a and /b may be fetched, or the error.
func allowed(t *testing.T, c *Client) string {
	t.Helper()
	out := ""
	for _, path := range []string{"/a", "/b"} {
		_, err := fetchBody(t, c, "http://site.example"+path)
		if err == nil {
			out += path
		} else if _, ok := errors.AsType[*RobotsError](err); !ok {
			return millrace.ErrorCode(err)
		}
	}
	return out
}

func TestRobotsAreCached(t *testing.T) {
	for name, validators := range map[string][2]string{"ETag": {`W/"1"`, ""}, "Last-Modified": {"", "Fri, 31 Dec 1999 00:00:00 GMT"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{rules: "user-agent: *\ndisallow: /a", etag: validators[0], date: validators[1]}
				c := obedient(t, Options{Rand: zero, Dial: memory(t, s.ServeHTTP)})
				want := func(text string, n map[string]int) {
					t.Helper()
					if got := allowed(t, c); got != text {
						t.Errorf("%q, want %q", got, text)
					}
					s.want(t, n)
				}
				want("/b", map[string]int{"/robots.txt": 1})
				time.Sleep(robotsAge - time.Second)
				want("/b", nil)
				time.Sleep(2 * time.Second)
				want("/b", map[string]int{"/robots.txt": 1, "304": 1})
				time.Sleep(robotsAge - time.Second)
				want("/b", nil)
				s.etag, s.date, s.rules = "", "", "user-agent: *\ndisallow: /"
				time.Sleep(2 * time.Second)
				want("", map[string]int{"/robots.txt": 1})
				// The old copy applies until a new one can be fetched.
				s.rules = ""
				time.Sleep(robotsAge)
				want("", map[string]int{"/robots.txt": 4})
				want("", nil)
				s.rules = "user-agent: *\ndisallow: /b"
				time.Sleep(robotsRetry)
				want("/a", map[string]int{"/robots.txt": 1})
			})
		})
	}
}

// A failure without a copy is cached for robotsRetry, so not every page requests robots.txt.
func TestRobotsFailureIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		c := obedient(t, Options{Rand: zero, Dial: memory(t, s.ServeHTTP)})
		for range 5 {
			began := time.Now()
			if got := allowed(t, c); got != "robots-unavailable" {
				t.Error(got)
			}
			if n := s.n["/robots.txt"]; n != 4 {
				t.Errorf("%d requests after %s", n, time.Since(began))
			}
		}
		s.want(t, map[string]int{"/robots.txt": 4})
		s.rules = "user-agent: *"
		time.Sleep(robotsRetry)
		if got := allowed(t, c); got != "/a/b" {
			t.Error(got)
		}
	})
}

// Concurrent callers share one request, even if the caller that sends it cancels.
func TestRobotsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked asked
		c := obedient(t, Options{Dial: memory(t, func(w http.ResponseWriter, r *http.Request) {
			if asked.add(r); r.URL.Path == "/robots.txt" {
				select {
				case <-time.After(10 * time.Second):
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "user-agent: *\ndisallow: /x")
			}
		})})
		first, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		ask := func(ctx context.Context, want error) {
			wg.Go(func() {
				r, err := c.Robots(ctx, parse(t, "http://site.example/x"))
				if !errors.Is(err, want) || want != nil && errors.Is(err, millrace.ErrUnavailable) || want == nil && r.Allowed("/x") {
					t.Errorf("%v, want %v", err, want)
				}
			})
			synctest.Wait()
		}
		ask(first, context.DeadlineExceeded) // sends the request
		ask(first, context.DeadlineExceeded) // waits for the request
		for range 20 {
			ask(t.Context(), nil)
		}
		began := time.Now()
		wg.Wait()
		asked.want(t, map[string]int{"/robots.txt": 2})
		if took := time.Since(began); took != 15*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// diary is a RobotsMemory backed by a map.
type diary struct {
	mu      sync.Mutex
	records map[string]string
	fail    error
}

func (d *diary) Load(_ context.Context, origin string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return []byte(d.records[origin]), d.fail
}

func (d *diary) Save(_ context.Context, origin string, record []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail == nil {
		d.records[origin] = string(record)
	}
	return d.fail
}

func TestRobotsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{rules: "user-agent: *\ndisallow: /a", etag: `"1"`}
		d := &diary{records: map[string]string{}}
		var log bytes.Buffer
		want := func(text string, n map[string]int) {
			t.Helper()
			c := obedient(t, Options{Rand: zero, Robots: d, Logger: slog.New(slog.NewTextHandler(&log, nil)), Dial: memory(t, s.ServeHTTP)})
			if got := allowed(t, c); got != text {
				t.Errorf("%q, want %q", got, text)
			}
			c.CloseIdleConnections()
			s.want(t, n)
		}
		const key = "http://site.example:80"
		want("/b", map[string]int{"/robots.txt": 1})
		// A record that disallows the first URL, /a, is revalidated.
		want("/b", map[string]int{"/robots.txt": 1, "304": 1})
		time.Sleep(robotsAge)
		want("/b", map[string]int{"/robots.txt": 1, "304": 1})
		// A record that allows the first URL is used without a request.
		s.rules, s.etag = "user-agent: *\ndisallow: /c", `"2"`
		time.Sleep(robotsAge)
		want("/a/b", map[string]int{"/robots.txt": 1})
		want("/a/b", nil)
		s.rules, s.etag = "user-agent: *\ndisallow: /a", `"3"`
		time.Sleep(robotsAge)
		want("/b", map[string]int{"/robots.txt": 1})
		// If the request fails, the older copy applies.
		s.rules = ""
		time.Sleep(robotsAge)
		want("/b", map[string]int{"/robots.txt": 4})
		// The record is from the future: the clock was wrong.
		s.rules, s.etag = "user-agent: *\ndisallow: /b", `"2"`
		d.records[key] = strings.Replace(d.records[key], `"time":"2000`, `"time":"2999`, 1)
		want("/a", map[string]int{"/robots.txt": 1})
		want("/a", nil)
		if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "level=WARN") {
			t.Error(log.String())
		}
		// An invalid record is ignored.
		for _, record := range []string{"{", `"x"`, "\x00", strings.Repeat(" ", maxRobotsRecord+1) + "{}", `{"time":"yesterday"}`} {
			log.Reset()
			d.records[key] = record
			want("/a", map[string]int{"/robots.txt": 1})
			if !strings.Contains(log.String(), "level=WARN") {
				t.Errorf("%.20q: %s", record, log.String())
			}
		}
		log.Reset()
		d.fail = errors.New("disk full")
		want("/a", map[string]int{"/robots.txt": 1})
		if strings.Count(log.String(), d.fail.Error()) != 2 {
			t.Error(log.String())
		}
		// The largest file fits.
		d.fail, d.records[key] = nil, ""
		s.rules = "user-agent: *\ndisallow: /b\n" + strings.Repeat("# 34567\n", 1<<20/8)
		want("/a", map[string]int{"/robots.txt": 1})
		want("/a", nil)
		if n := len(d.records[key]); n > maxRobotsRecord || n < maxRobots {
			t.Errorf("a record of %d bytes", n)
		}
		if len(d.records) != 1 {
			t.Errorf("records of %d origins", len(d.records))
		}
	})
}

// RecentRobots fetches the file again if the copy is older than age. If that fails, it returns
// the older copy.
func TestRecentRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{rules: "Sitemap: http://site.example/1", etag: `"1"`}
		c := obedient(t, Options{Rand: zero, Dial: memory(t, s.ServeHTTP)})
		u := parse(t, "http://site.example/")
		want := func(sitemap string, n map[string]int) {
			t.Helper()
			robots, err := RecentRobots(t.Context(), c.HTTP(), u, time.Minute)
			if err != nil || len(robots.Sitemaps()) != 1 || robots.Sitemaps()[0] != "http://site.example/"+sitemap {
				t.Errorf("%v, %v, want %s", robots, err, sitemap)
			}
			s.want(t, n)
		}
		want("1", map[string]int{"/robots.txt": 1})
		s.rules, s.etag = "Sitemap: http://site.example/2", `"2"`
		time.Sleep(time.Minute)
		want("1", nil)
		time.Sleep(time.Second)
		want("2", map[string]int{"/robots.txt": 1})
		time.Sleep(time.Hour)
		want("2", map[string]int{"/robots.txt": 1, "304": 1})
		want("2", nil)
		s.rules = ""
		time.Sleep(time.Hour)
		robots, err := RecentRobots(t.Context(), c.HTTP(), u, time.Minute)
		if err != nil || robots.Sitemaps()[0] != "http://site.example/2" {
			t.Errorf("%v, %v", robots, err)
		}
	})
}
