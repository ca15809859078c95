package crawl

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/mirror"
)

// restart is a transport to a site that restarts after a number of requests. The next requests
// fail, and those after them are not sent.
type restart struct {
	inner http.RoundTripper
	after int
	fails int // number of requests that fail
	rests int // number of requests that are not sent
	wait  time.Duration

	mu sync.Mutex
	n  int
}

func (x *restart) RoundTrip(req *http.Request) (*http.Response, error) {
	x.mu.Lock()
	x.n++
	n := x.n - x.after
	x.mu.Unlock()
	switch {
	case n <= 0 || n > x.fails+x.rests:
		return x.inner.RoundTrip(req)
	case n <= x.fails:
		return nil, millrace.ErrUnavailable
	}
	return nil, &fetch.PauseError{Host: req.URL.Host, Failures: x.fails, Wait: x.wait}
}

func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name          string
		restart       *restart
		err           string
		pages, missed int // number of stored pages, and number of lines in the report
	}{
		{"in the middle", &restart{after: 30, fails: 6, rests: 8}, "", 94, 6},
		{"with many under way", &restart{after: 30, fails: 24, rests: 2}, "", 76, 24},
		{"from the start", &restart{rests: 2}, "", 100, 0},
		{"at the root", &restart{after: 1, rests: 2}, "", 100, 0},
		{"at the probe", &restart{after: 2, rests: 2}, "", 100, 0},
		{"at the lists", &restart{after: 3, rests: 2}, "", 100, 0},
		{"for ever", &restart{after: 30, rests: 1000}, "too-many-failures", 0, -1},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s := newSite(t)
			var links []string
			for i := range 99 {
				p := "/p/" + hex(uint64(i))
				links = append(links, p)
				s.set(p, html(p, words(p)))
			}
			s.set("/", html("Home", words("home"), links...))
			m := newMill(t, s.URL+"/")
			c.restart.inner, c.restart.wait = http.DefaultTransport, time.Millisecond
			rep, err := m.try(m.through(&http.Client{Transport: c.restart}, Options{}))
			if millrace.ErrorCode(err) != c.err {
				t.Fatalf("%v", err)
			}
			if c.missed >= 0 && (rep.SkippedN != c.missed || len(m.pages()) != c.pages) {
				t.Errorf("%d pages, %d skipped: %v", len(m.pages()), rep.SkippedN, rep.Skipped[:min(3, rep.SkippedN)])
			}
			m.run(m.open(Options{}))
			if n := len(m.pages()); n != 100 {
				t.Errorf("%d pages after the next run", n)
			}
		})
	}
}

// The run ends at once if its context is canceled while it waits for a restarting site.
func TestRestartCanceled(t *testing.T) {
	s := newSite(t)
	chain(s, 40)
	m := newMill(t, s.URL+"/")
	ctx, cancel := context.WithCancel(t.Context())
	x := &restart{inner: http.DefaultTransport, after: 20, rests: 1000, wait: time.Hour}
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := mirror.Sync(ctx, from, m.through(&http.Client{Transport: x}, Options{}), m.site, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
