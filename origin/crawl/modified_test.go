package crawl

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
)

// modified returns the days of the modification times of the stored pages. The store adds seconds,
// because the times increase with each change, and sets the time of a page without one.
func (m *mill) modified() map[string]string {
	m.t.Helper()
	v, err := m.site.Head(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	out := map[string]string{}
	for p, err := range store.Visible(v).Scan(m.t.Context(), millrace.Scan{}) {
		if err != nil {
			m.t.Fatal(err)
		}
		if out[p.URL] = p.Modified.Format(time.DateOnly); p.Modified.Year() > 2024 {
			out[p.URL] = "unknown"
		}
	}
	return out
}

// An incremental crawl results in the same modification times as a new one, whatever the order of
// fetches and edits.
func TestModifiedIsThatOfAFreshCrawl(t *testing.T) {
	t.Parallel()
	seeds := 20
	if testkit.Soaking() {
		seeds = 400
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compareModified(t, rand.New(rand.NewPCG(uint64(seed), 30))) })
	}
}

func compareModified(t *testing.T, rnd *rand.Rand) {
	s := newSite(t)
	const n = 14
	day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	edited, version := [n]time.Time{}, [n]int{}
	header, tagged, listed, inFeed := [n]bool{}, [n]bool{}, [n]bool{}, [n]bool{}
	for i := range n {
		edited[i], header[i], tagged[i], listed[i], inFeed[i] = day, rnd.IntN(3) == 0, rnd.IntN(2) == 0, rnd.IntN(4) > 0, rnd.IntN(4) == 0
	}
	path := func(i int) string { return fmt.Sprintf("/p/%d", i) }
	publish := func() {
		var sitemap, other, links []string
		feed := `<feed xmlns="http://www.w3.org/2005/Atom"><title>f</title>`
		for i := range n {
			var more []string
			for range 3 {
				more = append(more, path(rnd.IntN(n)), fmt.Sprintf("/go/%d", rnd.IntN(n)))
			}
			show := document(doc(path(i), words(fmt.Sprint(path(i), version[i])), more...))
			date, delay := edited[i], time.Duration(rnd.IntN(3))*time.Millisecond
			s.set(path(i), func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(delay)
				if header[i] {
					w.Header().Set("Last-Modified", date.Format(http.TimeFormat))
				}
				if !tagged[i] {
					r.Header.Del("If-None-Match")
					w = untagged{w}
				}
				show(w, r)
			})
			s.set(fmt.Sprintf("/go/%d", i), redirect(path(i)))
			entry := s.URL + path(i) + " " + date.Format(time.DateOnly)
			switch {
			case listed[i] && i%2 == 0:
				sitemap = append(sitemap, entry)
			case listed[i]:
				other = append(other, entry, fmt.Sprintf("%s/go/%d %s", s.URL, i, date.Format(time.DateOnly)))
			}
			if inFeed[i] {
				feed += fmt.Sprintf("<entry><title>e</title><id>%d</id><link href=%q/><updated>%s</updated></entry>", i, s.URL+path(i), date.Format(time.RFC3339))
			}
			if !listed[i] || rnd.IntN(3) == 0 {
				links = append(links, path(i))
			}
		}
		s.set("/robots.txt", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "Sitemap: %s/a.xml\nSitemap: %s/b.xml\n", s.URL, s.URL)
		})
		s.set("/a.xml", document(urlset(sitemap...)))
		s.set("/b.xml", document(urlset(other...)))
		s.set("/feed", document(feed+"</feed>"))
		s.set("/", document(head("Home", `<link rel=alternate type=application/atom+xml href=/feed>`, words("home"), links...)))
	}
	publish()
	m := newMill(t, s.URL+"/")
	for range 4 {
		m.run(m.open(Options{Concurrency: 1 + rnd.IntN(4), MaxPages: []int{3, n, 500, 500}[rnd.IntN(4)]}))
		if rnd.IntN(2) == 0 { // some edits of a day are made after that day's crawl
			day = day.AddDate(0, 0, 1)
		}
		for range rnd.IntN(4) {
			i := rnd.IntN(n)
			edited[i] = day
			version[i]++
		}
		publish()
	}
	m.run(m.open(Options{Concurrency: 1 + rnd.IntN(4)}))
	fresh := newMill(t, s.URL+"/")
	fresh.run(fresh.open(Options{Concurrency: 1 + rnd.IntN(4)}))
	got, want := m.modified(), fresh.modified()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the incremental crawl has other times (+) than a fresh one:\n%s%v", d, slices.Sorted(maps.Keys(got)))
	}
}

// untagged removes the ETag of a response.
type untagged struct{ http.ResponseWriter }

func (u untagged) Write(b []byte) (int, error) {
	u.Header().Del("ETag")
	return u.ResponseWriter.Write(b)
}
