package simulation

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

// settle applies the last changes without faults, and compares: the store with its
// sources, the replicas with the store, and the clients with the replicas.
func (w *world) settle() {
	l := &process{name: "settling", ctx: w.ctx, rng: w.rand("settle"), slow: 1}
	w.mu.Lock()
	l.conf, l.path, l.crashes = w.conf, w.path, w.crashes
	w.mu.Unlock()
	// All replicas restart with the same generation.
	for i := range w.replicas {
		w.killOne(replicaName(i))
	}
	// Writers end, replicas restart, and clients retry an interrupted robots.txt.
	w.sleep(70 * time.Second)
	_, site, err := w.open(l)
	if err != nil {
		w.broke("opening the store at the end: %v", err)
		return
	}
	for range rounds {
		if w.ctx.Err() != nil || !w.round(l, site) {
			return
		}
	}
}

// rounds is the number of final comparisons, each after some changes.
const rounds = 3

// round changes the site once more, pulls while one replica is ahead of the other, and
// compares after both have caught up.
func (w *world) round(l *process, site store.Site) bool {
	for range 8 {
		w.logf("origin: %s", w.origin.change())
	}
	if !w.sync(l, site, false) {
		w.broke("the last scan of the origin failed")
		return false
	}
	saved := time.Now()
	v, err := site.Head(w.ctx)
	if err != nil {
		w.broke("the store at the end: %v", err)
		return false
	}
	pages, err := w.visiblePages(l, v)
	if err != nil {
		w.broke("the store at the end: %v", err)
		return false
	}
	w.compareStore(l, pages)
	alive := w.alive()
	if len(alive) != w.replicas {
		w.broke("%d replicas remain", len(alive))
		return false
	}
	alive[l.rng.IntN(w.replicas)].server.Changed()
	// These pulls may see the older replica, which must have no lasting effect.
	w.await(saved, pages, 1)
	var pulls sync.WaitGroup
	for _, c := range w.clients {
		pulls.Go(func() { c.pull(w.ctx) })
	}
	pulls.Wait()
	w.await(saved, pages, w.replicas)
	w.compareReplicas()
	if w.ctx.Err() != nil {
		return false
	}
	v = w.alive()[0].server.Current().View
	if pages, err = scan(w.ctx, v); err != nil {
		w.broke("the edition at the end: %v", err)
		return false
	}
	for _, c := range w.clients {
		c.compare(v, pages)
	}
	return true
}

// await waits until n replicas have an edition with the pages that were saved at a time.
func (w *world) await(saved time.Time, pages map[string]*millrace.Page, n int) {
	for late := false; ; late = time.Since(saved) > w.freshness() {
		have := 0
		for _, l := range w.alive() {
			if ed := l.server.Current(); ed != nil {
				if got, err := scan(w.ctx, ed.View); err == nil && samePages(pages, got) == "" {
					have++
				}
			}
		}
		switch {
		case have >= n || w.ctx.Err() != nil:
			return
		case late:
			w.broke("the final state of the store is not fresh after %v: it has not reached %d replicas", w.freshness(), n)
			return
		}
		w.sleep(100 * time.Millisecond)
	}
}

// samePages returns the difference of two sets of pages except for their dates, or "" if they
// are equal.
func samePages(want, got map[string]*millrace.Page) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(millrace.Page{}, "Version", "Modified", "Known"))
}

// visiblePages returns the pages of a site that a configuration shows.
func (w *world) visiblePages(l *process, v millrace.View) (map[string]*millrace.Page, error) {
	all, err := scan(w.ctx, v)
	out := make(map[string]*millrace.Page)
	for u, p := range all {
		c := p.Clone()
		c.URL = canon.Relative(base, u)
		if visible, ok := w.config(l).Visibility.Apply(c); ok {
			out[u] = visible.Clone()
			out[u].URL = u
		}
	}
	return out, err
}

// broke reports a failure of an operation that must succeed, unless the run has ended.
func (w *world) broke(format string, args ...any) {
	if w.ctx.Err() == nil {
		w.fail(format, args...)
	}
}

// compareStore compares the store's visible pages with its sources.
func (w *world) compareStore(l *process, got map[string]*millrace.Page) {
	all := w.origin.want()
	for _, e := range w.api.acked {
		all[e.url] = e.page()
	}
	want := make(map[string]*millrace.Page)
	for u, p := range all {
		if visible, ok := w.config(l).Visibility.Apply(p); ok {
			c := visible.Clone()
			c.URL = base + strings.TrimPrefix(u, "/")
			want[c.URL] = c
		}
	}
	if diff := samePages(want, got); diff != "" && w.ctx.Err() == nil {
		w.fail("the store differs from its sources (-sources +store):\n%s", diff)
	}
}

// compareReplicas requests every document from every replica.
func (w *world) compareReplicas() {
	gen := ""
	for _, l := range w.alive() {
		if w.ctx.Err() != nil {
			return
		}
		if gen == "" {
			gen = l.gen
		}
		last, paths := w.oracle.end(l.gen)
		if now := l.server.Current(); now == nil || now.View.Site().Seq != last.seq || l.gen != gen {
			w.fail("%s has not reached edition %d of %s", l.name, last.seq, gen)
			continue
		}
		for _, path := range paths {
			r := httptest.NewRequestWithContext(w.ctx, http.MethodGet, path, nil)
			x, a := w.oracle.ask(l, r), httptest.NewRecorder()
			found, err := l.server.Serve(a, r)
			if err != nil && millrace.Status(err) != http.StatusNotFound { // a protocol may use another text for it
				w.fail("%s at %s: %v", path, l.name, err)
				continue
			}
			_, want := last.docs[path]
			if found && !want && strings.HasPrefix(path, "/openfeeder?") {
				continue // an index has the requested number of pages; a URL may lack its slash
			}
			if want != found {
				w.fail("%s at %s: found = %v", path, l.name, found)
			}
			if found {
				x.answered(a.Result(), a.Body.Bytes())
			}
		}
	}
}

// compare pulls once more, or twice if a list needs confirmation. It then compares the mirror with
// the carried pages.
func (c *client) compare(v millrace.View, pages map[string]*millrace.Page) {
	w := c.w
	for range 2 {
		if w.ctx.Err() != nil {
			return
		}
		report := c.pull(w.ctx)
		if report.SkippedN > 0 {
			w.fail("%s: skipped without a cause: %v", c.name, report.Skipped)
		}
		if report.UnconfirmedDeletions == 0 {
			break
		}
	}
	want, got := make(map[string]*millrace.Page), c.lastPages
	for u, p := range pages {
		if carried := c.p.Carry(v.Site(), p); carried != nil {
			want[u] = carried
		}
	}
	if want[base] == nil {
		delete(got, base) // the overview of a site without a home page
	}
	if c.p.Name == "tct-00" {
		// A validator identifies a text: a page that was hidden for a while with the
		// same text is not fetched, and keeps its date.
		for u, p := range want {
			if g := got[u]; g != nil && g.Modified.Before(p.Modified) {
				g = g.Clone()
				g.Modified = p.Modified
				got[u] = g
			}
		}
	}
	ignore := []string{"Version"}
	if !c.sink.exact() {
		// A store dates ingested pages by its own rules, and marks the date as known.
		ignore = append(ignore, "Modified", "Known")
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(millrace.Page{}, ignore...)); diff != "" && w.ctx.Err() == nil {
		w.fail("%s differs from map(Carry, view) of %d (-carried +mirror):\n%s", c.name, v.Site().Seq, diff)
	}
}

// stats returns the counts of events.
func (w *world) stats() string {
	pulls, complete := 0, 0
	for _, c := range w.clients {
		pulls, complete = pulls+c.pulls, complete+c.complete
	}
	lag := time.Duration(0)
	for _, d := range w.lags {
		lag = max(lag, d)
	}
	return fmt.Sprintf("%d editions, %d responses, %d interruptions, %d power failures, %d configurations, %d pulls, %d of them complete, at most %v until visible",
		len(w.oracle.editions), w.oracle.checked, w.net.cuts.Load(), w.crashes, w.conf+1, pulls, complete, lag)
}
