package discover_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

func primaries(s *discover.SiteReport) (names []string) {
	for _, w := range s.Ways {
		names = append(names, w.Protocol)
	}
	return names
}

// A quick probe ends when it has found a file with all pages. The plan is the same as after a
// full probe.
func TestProbeQuick(t *testing.T) {
	want := []string{"scp", "crawl"}
	for _, pages := range []int{40, 700} {
		s := publish(t, pages, protocol.PublisherOptions{}, all.Protocols()...)
		got := probe(t, s.URL, &discover.Options{Quick: true, PolicyKnown: true})
		if !got.Quick || !slices.Equal(primaries(got), want) || s.requests() > 2 {
			t.Errorf("%d pages: %v, brief: %v, with %d requests: %+v", pages, primaries(got), got.Quick, s.requests(), got.Ways[0].Offer)
		}
		if twice := s.twice(); len(twice) > 0 {
			t.Errorf("asked twice: %v", twice)
		}
		again := probe(t, s.URL, &discover.Options{Quick: true, PolicyKnown: true, Previous: got})
		if !again.Quick || !slices.Equal(primaries(again), want) || again.Spent.Bytes > 0 {
			t.Errorf("again: %+v", again)
		}
		full := probe(t, s.URL, nil)
		if full.Quick || len(full.Ways) != len(all.Protocols())+1 {
			t.Errorf("all over: %v", primaries(full))
		}
		if short := full.Short(all.Protocols()); short == nil || !slices.Equal(primaries(short), want) {
			t.Errorf("Short of the full probe: %+v", short)
		}
		if a, b := got.Plan(nil), full.Plan(nil); a.First.Primary != b.First.Primary || a.Refresh.Primary != b.Refresh.Primary {
			t.Errorf("quick probe: %s, then %s; full probe: %s, then %s", a.First.Primary, a.Refresh.Primary, b.First.Primary, b.Refresh.Primary)
		}
	}
}

// A quick probe continues if the file contains only some of the pages, if it is missing, and if the
// site forbids its use.
func TestProbeQuickGoesOn(t *testing.T) {
	no := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AIInput: false}}
	more := files{}
	for name, c := range map[string]struct {
		site    func() *site
		primary string
	}{
		"part of the pages": {func() *site {
			s := publish(t, 8, protocol.PublisherOptions{}, all.Protocols()...)
			list := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
			for i := range 400 {
				list += fmt.Sprintf("<url><loc>%s/more/%d</loc></url>", s.URL, i)
				more[fmt.Sprintf("/more/%d", i)] = "<p>more</p>"
			}
			more["/more.xml"] = list + "</urlset>"
			s.handlers = append(s.handlers, more, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if w.WriteHeader(map[bool]int{true: 200, false: 404}[r.URL.Path == "/robots.txt"]); r.URL.Path == "/robots.txt" {
					_, _ = w.Write([]byte("Sitemap: " + s.URL + "/more.xml\n"))
				}
			}))
			return s
		}, discover.Web},
		"no file": {func() *site { return newSite(t, files{"/": home}) }, discover.Web},
		"a policy": {func() *site {
			return publish(t, 8, protocol.PublisherOptions{Policy: no}, all.Protocols()...)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.site()
			got := probe(t, s.URL, &discover.Options{Quick: true})
			if primary := got.Plan(nil).First.Primary; got.Quick || primary != c.primary {
				t.Errorf("brief: %v, by %s: %v", got.Quick, primary, primaries(got))
			}
			if short := got.Short(all.Protocols()); short != nil {
				t.Errorf("made short: %v", primaries(short))
			}
			if twice := s.twice(); len(twice) > 0 {
				t.Errorf("asked twice: %v", twice)
			}
		})
	}
}

// On a site without any protocol, no page is fetched except the root.
func TestProbeQuickWeb(t *testing.T) {
	s := newSite(t, files{"/": home, "/a": home, "/b": home})
	got := probe(t, s.URL, &discover.Options{Quick: true, PolicyKnown: true})
	if w := got.Way(discover.Web); !w.Open() || got.Quick || s.asked["GET /a"]+s.asked["GET /b?c"] > 0 || s.asked["GET /"] != 1 {
		t.Errorf("%+v: %v", w, s.asked)
	}
}
