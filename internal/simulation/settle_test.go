package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
)

// settle lets the last changes through, with no more faults, and compares:
// the store with what its sources say, the replicas with the store, and the
// clients with the replicas.
func (w *world) settle() {
	l := &life{name: "settling", ctx: w.ctx, rng: w.rand("settle")}
	w.mu.Lock()
	l.conf, l.path, l.crashes = w.conf, w.path, w.crashes
	w.mu.Unlock()
	w.sleep(10 * time.Second) // writers come to their end, replicas are back
	site, err := w.open(l)
	if err == nil {
		err = site.Derive(l.ctx, nil)
	}
	if err != nil {
		w.broke("opening the store at the end: %v", err)
		return
	}
	if !w.sync(l, site, false) {
		w.broke("the last look at the origin has failed")
		return
	}
	for _, l := range w.alive() {
		l.press.Changed()
		break // the other one follows
	}
	w.sleep(settling)
	v, err := site.Head(w.ctx)
	if err != nil {
		w.broke("the store at the end: %v", err)
		return
	}
	pages, err := scan(w.ctx, v)
	if err != nil {
		w.broke("the store at the end: %v", err)
		return
	}
	w.compareStore(l, pages)
	w.compareReplicas(v.Site().Seq)
	for _, c := range w.clients {
		c.compare(v, pages)
	}
}

// broke reports a failure of what must work, unless the run has ended.
func (w *world) broke(format string, args ...any) {
	if w.ctx.Err() == nil {
		w.fail(format, args...)
	}
}

// compareStore compares what the store shows with what its sources say.
func (w *world) compareStore(l *life, got map[string]*millrace.Page) {
	all := w.origin.want()
	for _, e := range w.api.acked {
		all[e.url] = e.page()
	}
	want := make(map[string]*millrace.Page)
	for u, p := range all {
		if shown, ok := w.config(l).Visibility.Apply(p); ok {
			c := shown.Clone()
			c.URL = base + strings.TrimPrefix(u, "/")
			want[c.URL] = c
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(millrace.Page{}, "Version", "Modified", "Known")); diff != "" && w.ctx.Err() == nil {
		w.fail("the store is not what its sources say (-sources +store):\n%s", diff)
	}
}

// compareReplicas asks every replica for every document.
func (w *world) compareReplicas(seq uint64) {
	if w.ctx.Err() != nil {
		return
	}
	last := w.oracle.editions[len(w.oracle.editions)-1]
	if last.seq != seq {
		w.fail("edition %d is the last one, the store is at %d", last.seq, seq)
		return
	}
	alive := w.alive()
	if len(alive) != replicas {
		w.fail("%d replicas are left", len(alive))
	}
	for _, l := range alive {
		if now := l.press.Current(); now == nil || now.View.Site().Seq != seq {
			w.fail("%s has not come to edition %d", l.name, seq)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(w.oracle.docs)) {
			r := httptest.NewRequestWithContext(w.ctx, http.MethodGet, path, nil)
			x, a := w.oracle.ask(l, r), httptest.NewRecorder()
			found, err := l.press.Serve(a, r)
			if err != nil {
				w.fail("%s at %s: %v", path, l.name, err)
				continue
			}
			if _, want := last.docs[path]; want != found {
				w.fail("%s at %s: found is %v", path, l.name, found)
			}
			if found {
				x.answered(a.Result(), a.Body.Bytes())
			}
		}
	}
}

// compare pulls once more, twice if a list was not believed at once, and
// holds the mirror against the law.
func (c *client) compare(v millrace.View, pages map[string]*millrace.Page) {
	w := c.w
	for range 2 {
		if w.ctx.Err() != nil {
			return
		}
		report := c.pull(w.ctx)
		if report.SkippedN > 0 {
			w.fail("%s: %v is skipped although nothing is wrong", c.name, report.Skipped)
		}
		if report.Doubted == 0 {
			break
		}
	}
	want, got := make(map[string]*millrace.Page), c.held
	for u, p := range pages {
		if carried := c.p.Carry(p); carried != nil {
			want[u] = carried
		}
	}
	if want[base] == nil {
		delete(got, base) // the overview of a site without a home page
	}
	ignore := []string{"Version"}
	if !c.sink.exact() {
		// A store dates what it takes in by its own rules, and speaks for the date.
		ignore = append(ignore, "Modified", "Known")
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(millrace.Page{}, ignore...)); diff != "" && w.ctx.Err() == nil {
		w.fail("%s is not map(Carry, view) of %d (-carried +mirror):\n%s", c.name, v.Site().Seq, diff)
	}
}

// stats says how much happened.
func (w *world) stats() string {
	pulls, whole := 0, 0
	for _, c := range w.clients {
		pulls, whole = pulls+c.pulls, whole+c.whole
	}
	return fmt.Sprintf("%d editions, %d answers, %d cuts, %d power failures, %d configurations, %d pulls, %d of them whole",
		len(w.oracle.editions), w.oracle.checked, w.net.cuts.Load(), w.crashes, w.conf+1, pulls, whole)
}
