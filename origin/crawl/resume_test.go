package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// chain creates a site of n pages. Only page i links to the pages 2i+1 and 2i+2.
func chain(s *site, n int) {
	name := func(i int) string {
		if i == 0 {
			return "/"
		}
		return fmt.Sprintf("/p/%d", i)
	}
	for i := range n {
		var links []string
		for _, k := range []int{2*i + 1, 2*i + 2} {
			if k < n {
				links = append(links, name(k))
			}
		}
		s.set(name(i), html(name(i), words(name(i)), links...))
	}
}

// An interrupted run resumes where it stopped, even if the pages before that point are
// unchanged.
func TestResume(t *testing.T) {
	s := newSite(t)
	const n = 200
	chain(s, n)
	m := newMill(t, s.URL+"/")
	total := 0
	for run := 0; len(m.pages()) < n; run++ {
		if run > 30 {
			t.Fatalf("%d pages after %d runs", len(m.pages()), run)
		}
		ctx, cancel := context.WithCancel(t.Context())
		before := len(m.pages())
		var done atomic.Int64
		_, err := mirror.Sync(ctx, from, m.open(Options{Progress: func(int, int) {
			if done.Add(1) > int64(before+60) {
				cancel()
			}
		}}), m.site, &mirror.Options{Batch: 4})
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		total += len(s.asked())
	}
	if total > 8*n {
		t.Errorf("%d requests for %d pages", total, n)
	}
	m.run(m.open(Options{}))
	if got := len(m.pages()); got != n {
		t.Errorf("%d pages", got)
	}
}

func TestLimits(t *testing.T) {
	s := newSite(t)
	chain(s, 100)
	m := newMill(t, s.URL+"/")
	seen := map[string]int{}
	for run, want := range []int{30, 60, 90, 100} {
		rep := m.run(m.open(Options{MaxPages: 60, Concurrency: 2}))
		for _, u := range s.asked() {
			seen[u]++
		}
		if rep.UnconfirmedDeletions+rep.Deleted > 0 {
			t.Errorf("run %d: %+v", run, rep)
		}
		if got := len(m.pages()); got < want {
			t.Errorf("run %d: %d pages, want %d", run, got, want)
		}
	}
	// Later runs also fetch the stored pages.
	for range 3 {
		m.run(m.open(Options{MaxPages: 60, Concurrency: 2}))
		for _, u := range s.asked() {
			seen[u]++
		}
	}
	for u, n := range seen {
		if strings.HasPrefix(u, "/p/") && n < 2 {
			t.Errorf("%s was requested %d times in 7 runs", u, n)
		}
	}
	deep := newMill(t, s.URL+"/")
	rep := deep.run(deep.open(Options{MaxDepth: 2}))
	if got := len(deep.pages()); got != 7 || rep.SkippedN != 1 || rep.Skipped[0].Code != "max-depth" {
		t.Errorf("%d pages, skipped: %v", got, rep.Skipped)
	}
	var clock atomic.Int64
	slow := newMill(t, s.URL+"/")
	slow.run(slow.open(Options{MaxTime: 20 * time.Minute, Concurrency: 1, Now: func() time.Time { return time.Unix(1_800_000_000+60*clock.Add(1), 0) }}))
	if got := len(slow.pages()); got == 0 || got > 25 {
		t.Errorf("%d pages during 20 readings of the clock", got)
	}
}

// If many pages are missing at once, their deletion is unconfirmed.
func TestMassLoss(t *testing.T) {
	s := newSite(t)
	chain(s, 30)
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	for i := 10; i < 30; i++ {
		s.set(fmt.Sprintf("/p/%d", i), nil)
	}
	rep := m.run(m.open(Options{}))
	if rep.UnconfirmedDeletions != 20 || len(m.pages()) != 30 {
		t.Errorf("%d deletions are unconfirmed, %d pages remain", rep.UnconfirmedDeletions, len(m.pages()))
	}
	rep = m.run(m.open(Options{}))
	if rep.Deleted != 20 || len(m.pages()) != 10 {
		t.Errorf("%d pages were deleted, %d remain", rep.Deleted, len(m.pages()))
	}
}

// Broken links do not count as missing pages.
func TestBrokenLinks(t *testing.T) {
	s := newSite(t)
	var links []string
	for i := range 40 {
		links = append(links, fmt.Sprintf("/broken/%d", i))
	}
	s.set("/", html("Home", words("home"), links...))
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	if rep.UnconfirmedDeletions > 0 || rep.SkippedN != 40 {
		t.Errorf("%d deletions are unconfirmed, %d skipped", rep.UnconfirmedDeletions, rep.SkippedN)
	}
	rep = m.run(m.open(Options{}))
	if rep.UnconfirmedDeletions > 0 || rep.SkippedN != 0 {
		t.Errorf("%d deletions are unconfirmed, %d skipped", rep.UnconfirmedDeletions, rep.SkippedN)
	}
}

// If a page has no validators and its HTML differs in every response, the page is unchanged as long
// as its text is unchanged.
func TestNonces(t *testing.T) {
	s := newSite(t)
	var n atomic.Int64
	noisy := func(title string, links ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			fmt.Fprintf(w, "<!-- %d -->%s", n.Add(1), head(title, fmt.Sprintf("<meta name=csrf content=%d>", n.Load()), words(title), links...))
		}
	}
	s.set("/", noisy("Home", "/a"))
	s.set("/a", noisy("A"))
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	seq := m.seq()
	var before []millrace.Ref
	for r := range m.site.KnownRefs(t.Context(), from) {
		before = append(before, r)
	}
	rep := m.run(m.open(Options{}))
	var after []millrace.Ref
	for r := range m.site.KnownRefs(t.Context(), from) {
		after = append(after, r)
	}
	equal(t, "what is held", after, before)
	if m.seq() != seq || rep.Updated > 0 {
		t.Errorf("%+v", rep.Counts)
	}
}

// If only the validators of a page change, only these are written.
func TestNewValidators(t *testing.T) {
	s := newSite(t)
	var n atomic.Int64
	s.set("/", func(w http.ResponseWriter, r *http.Request) {
		tag := fmt.Sprintf(`"%d"`, n.Load())
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, doc("Home", words("home")))
	})
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	seq := m.seq()
	n.Add(1)
	m.run(m.open(Options{}))
	for r := range m.site.KnownRefs(t.Context(), from) {
		if !strings.HasSuffix(r.Version, ` "1"`) {
			t.Errorf("held is %q", r.Version)
		}
	}
	if m.seq() != seq {
		t.Error("the page was written")
	}
}

// Without stored refs, every run is a first run.
func TestNoMemory(t *testing.T) {
	s := newSite(t)
	chain(s, 20)
	c, err := New(client(), s.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		pages, cursor := 0, millrace.Cursor("")
		for ch, err := range c.Changes(t.Context(), cursor) {
			if err != nil {
				t.Fatal(err)
			}
			if ch.Page != nil && ch.Page.Known != 0 {
				pages++
			}
			if ch.Checkpoint != nil {
				cursor = ch.Checkpoint.Cursor
			}
		}
		if pages != 20 {
			t.Errorf("%d pages", pages)
		}
	}
}

// A crawl that runs for a long time fetches rarely changing pages less often.
func TestSchedule(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/steady", "/lively"))
	s.set("/steady", html("Steady", words("steady")))
	m := newMill(t, s.URL+"/")
	now := time.Now()
	c := m.open(Options{Now: func() time.Time { return now }})
	if !c.Next().IsZero() {
		t.Errorf("the first run is due at %v", c.Next())
	}
	count := map[string]int{}
	end := now.Add(14 * 24 * time.Hour)
	edits, edited := 0, now
	runs := 0
	for now.Before(end) {
		if runs++; runs > 14*24*13 {
			t.Fatalf("%d runs, the next one at %v, the end at %v", runs, now, end)
		}
		if now.Sub(edited) >= 2*time.Hour {
			edits, edited = edits+1, now
		}
		s.set("/lively", html("Lively", words(fmt.Sprint("lively", edits))))
		m.run(c)
		for _, u := range s.asked() {
			count[u]++
		}
		next := c.Next()
		if d := next.Sub(now); d < minInterval || d > minFirstInterval {
			t.Fatalf("the next run is in %v", d)
		}
		now = next
	}
	if count["/steady"] > 24 || count["/steady"] < 13 {
		t.Errorf("a page that never changes was requested %d times", count["/steady"])
	}
	if count["/lively"] < 100 || count["/lively"] > 2000 {
		t.Errorf("a page that changed every two hours was requested %d times", count["/lively"])
	}
	// If the clock is set back by a year, a page that changes often is due an hour later.
	now = now.AddDate(-1, 0, 0)
	m.run(c)
	s.asked()
	s.set("/lively", html("Lively", words("lively after all")))
	for range 14 {
		now = now.Add(time.Hour)
		m.run(c)
	}
	found := false
	for _, u := range s.asked() {
		found = found || u == "/lively"
	}
	if !found {
		t.Error("a clock that was set back delays a page")
	}
}
