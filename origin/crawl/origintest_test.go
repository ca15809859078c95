package crawl

import (
	"fmt"
	"maps"
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
	"github.com/millrace/millrace/origin/origintest"
)

// web is a website that the suite changes. Its home page links to all pages. If minimal is set,
// only the sitemap names the pages, the site sends no validators, and the HTML of a page
// changes with every request.
type web struct {
	*httptest.Server
	minimal bool

	mu      sync.Mutex
	pages   map[string]string // HTML by name
	broken  map[string]bool
	trouble origintest.Trouble
	quit    chan struct{}
	n       int
}

func newWeb(t testing.TB, minimal bool) *web {
	s := &web{minimal: minimal, pages: map[string]string{}, broken: map[string]bool{}, quit: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.quit)
		s.Close()
	})
	return s
}

func (s *web) Address() string        { return s.URL0() }
func (s *web) Base() string           { return s.URL0() }
func (s *web) URL0() string           { return s.Server.URL + "/" }
func (s *web) URL(name string) string { return "/" + name }

func (s *web) Put(name, title, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[name] = doc(title, text, "/")
	return nil
}

func (s *web) Delete(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, name)
	return nil
}

func (s *web) Break(name string) error  { return s.set(name, true) }
func (s *web) Repair(name string) error { return s.set(name, false) }

func (s *web) set(name string, broken bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[name] = broken
	return nil
}

func (s *web) Trouble(t origintest.Trouble) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = t
	return nil
}

func (s *web) Unreadable() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages["odd"] = doc("Odd", "This page leads to nothing.", "/empty", "/nowhere", "/secret")
	s.pages["empty"] = "<!DOCTYPE html><title></title><body></body>"
	return []string{s.URL0() + "empty", s.URL0() + "nowhere", s.URL0() + "secret"}, nil
}

func (s *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	name := strings.TrimPrefix(r.URL.Path, "/")
	body, ok := s.pages[name]
	trouble, broken := s.trouble, s.broken[name]
	var links []string
	if name == "" || name == "sitemap.xml" {
		for n := range maps.Keys(s.pages) {
			if n != "empty" {
				links = append(links, "/"+n)
			}
		}
		slices.Sort(links)
	}
	s.n++
	nonce := s.n
	s.mu.Unlock()
	switch {
	case name == "robots.txt": // never fails: the client caches a failure for a minute
		http.NotFound(w, r)
		return
	case trouble == origintest.Hung:
		select {
		case <-r.Context().Done():
		case <-s.quit:
		}
		return
	case trouble == origintest.Down, broken:
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case name == "secret":
		http.Error(w, "no", http.StatusForbidden)
		return
	case name == "" && s.minimal:
		body = doc("Home", "What there is stands in the sitemap.")
	case name == "":
		body = doc("Home", "All there is to read.", links...)
	case name == "sitemap.xml" && s.minimal:
		body = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
		for _, l := range links {
			body += "<url><loc>" + s.Server.URL + l + "</loc></url>"
		}
		body += "</urlset>"
	case !ok:
		http.NotFound(w, r)
		return
	}
	if s.minimal {
		if name != "sitemap.xml" {
			body = strings.Replace(body, "<body>", fmt.Sprintf("<body><script>nonce=%d</script>", nonce), 1)
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, body)
		return
	}
	document(body)(w, r)
}

func TestOrigin(t *testing.T) {
	for name, minimal := range map[string]bool{"Validators": false, "Bare": true} {
		t.Run(name, func(t *testing.T) {
			origintest.Run(t, origintest.Origin{
				New: func(t testing.TB) origintest.Site { return newWeb(t, minimal) },
				Open: func(t testing.TB, place string, known origintest.KnownRefs) (millrace.Source, error) {
					c := fetch.New(&fetch.Options{AllowPrivate: true, Timeout: 20 * time.Second})
					t.Cleanup(c.CloseIdleConnections)
					// The clock advances with each reading, so that every page is due in the next
					// run.
					start, readings := time.Now(), new(atomic.Int64)
					clock := func() time.Time { return start.Add(time.Duration(readings.Add(1)) * 24 * time.Hour) }
					return New(c.HTTP(), place, &Options{KnownRefs: known, Now: clock})
				},
			})
		})
	}
}
