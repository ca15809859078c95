package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
)

// generations is the model of a site's publications.
type generations struct {
	*fixture
	*model
	rng     *rand.Rand
	configs []store.Config
	open    []*generation // open generation of each configuration, or nil
	known   map[string]*generation
	last    map[string]*generation // the generation that published last, by base
	clients map[string]*follower   // clients of the published views below a base
	cut     atomic.Int64           // number of pages after which a tagger cancels Refresh, 0 = never
	cancel  context.CancelFunc
	horizon time.Time // horizon of the compactions so far
	born    int       // number of generations
}

// generation is the model of a generation.
type generation struct {
	store.Publication
	config   int
	born     int // number of older generations
	replaced bool
	parent   *generation
	fork     uint64 // last entry of the parent before the fork
	children int
	used     time.Time
	inherits store.Edition // edition of the parent
	edition  store.Edition // newest edition that it has published itself
	seq      uint64        // sequence number of the published view
	head     *seen         // may be nil
	before   *seen         // an earlier head that may be in use, nil = none
	looks    map[uint64]content
	reader   *follower
}

// seen is a view with its content.
type seen struct {
	view millrace.View
	look content
}

func generationModelCases() (cases []testCase) {
	for seed := range uint64(testkit.Size(2, 4, 100)) {
		cases = append(cases, testCase{fmt.Sprint("generations agree with a model, seed ", seed), func(t *testing.T, f *fixture) {
			if seed%2 == 1 {
				f.name = folder
				f.reopen()
			}
			g := newGenerations(f, seed)
			for step := range 150 {
				what := fmt.Sprintf("seed %d, step %d: ", seed, step)
				what += g.step(what)
				g.check(what)
				if t.Failed() {
					t.FailNow()
				}
			}
		}})
	}
	return cases
}

func newGenerations(f *fixture, seed uint64) *generations {
	g := &generations{
		fixture: f, model: newModel(), rng: rand.New(rand.NewPCG(seed, 7)), known: make(map[string]*generation),
		last: make(map[string]*generation), clients: map[string]*follower{base: {}, localBase: {}},
	}
	f.config.EndpointBase = "https://unused.example/" // not used by any generation of the model
	tagger := slashes()
	tag := tagger.Tag
	tagger.Tag = func(s millrace.Site, p *millrace.Page) (string, error) {
		if g.cut.Add(-1) == 0 {
			g.cancel()
		}
		return tag(s, p)
	}
	for _, b := range []string{base, localBase} {
		for _, v := range []millrace.Visibility{{}, {Exclude: []string{"/private", "/b"}}, {Authors: millrace.AuthorHidden}} {
			g.configs = append(g.configs, store.Config{Base: b, Visibility: v, Taggers: []millrace.Tagger{tagger}})
		}
	}
	g.open = make([]*generation, len(g.configs))
	return g
}

// pick returns an open generation, or nil.
func (g *generations) pick() *generation {
	var open []*generation
	for _, p := range g.open {
		if p != nil {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[g.rng.IntN(len(open))]
}

// step runs a step and returns its description.
func (g *generations) step(what string) string {
	op := g.rng.IntN(24)
	p := g.pick()
	if p == nil && op < 20 {
		op = 20
	}
	switch {
	case op < 10:
		g.mutate(g.fixture, g.rng)
		return "apply"
	case op < 13:
		g.update(what, p)
		return "refresh"
	case op < 14:
		g.cutOffAfter(p, 1+g.rng.Int64N(6))
		return "refresh was interrupted"
	case op < 17:
		g.publishNext(what, p)
		return "publish"
	case op < 18:
		g.pass(time.Duration(g.rng.IntN(2000)) * time.Millisecond)
		return "wait"
	case op < 20:
		return g.compactAfter(what)
	case op < 21:
		g.reopen()
		for i, p := range g.open {
			if p != nil {
				g.openConfig(what, i)
			}
		}
		return "restart"
	}
	g.openConfig(what, g.rng.IntN(len(g.configs)))
	return "open"
}

// openConfig opens the generation of a configuration.
func (g *generations) openConfig(what string, config int) {
	g.Helper()
	b := g.configs[config].Base
	last := g.last[b]
	pub := g.publication(g.configs[config])
	p := g.known[pub.Name()]
	var newest *generation
	for _, other := range g.known {
		if other.config == config && (newest == nil || other.born > newest.born) {
			newest = other
		}
	}
	continued := func(p *generation) bool { return last != nil && last.continues(p) }
	switch {
	case newest != nil && p != newest && newest.head != nil && !g.droppable(newest) && !continued(newest):
		g.Errorf("%s%s is opened in place of %s", what, pub.Name(), newest.Name())
	case p != nil && continued(p):
		g.Errorf("%s%s is opened again after %s continued it", what, p.Name(), last.Name())
	case p != nil && p.config != config:
		g.Errorf("%sconfiguration %d opens the generation of configuration %d", what, config, p.config)
	}
	if p == nil {
		g.born++
		if newest != nil && newest.head == nil {
			newest.replaced = true // the replaced generation had no edition
		}
		p = &generation{config: config, born: g.born, parent: last, looks: make(map[uint64]content), reader: new(follower)}
		g.known[pub.Name()] = p
		if last != nil {
			p.fork = last.seq
			last.children++
			p.inherits = last.newest()
			maps.Copy(p.looks, last.looks)
		}
	}
	p.Publication, p.used, p.before = pub, g.clock(), nil
	g.open[config] = p
	if p.head != nil {
		seq := p.head.view.Site().Seq
		p.head = &seen{g.headOf(p), p.head.look}
		want(g.fixture, what+"head", p.head.view.Site().Seq, seq)
	}
	if p.edition.Number == 0 {
		want(g.fixture, what+"inherited edition", g.unpublished(p), p.inherits)
	}
}

// continues reports whether a generation was forked from another one, directly or indirectly,
// after everything that the other one has published.
func (p *generation) continues(other *generation) bool {
	for ; p.parent != nil; p = p.parent {
		if p.parent == other {
			return other.seq <= p.fork
		}
	}
	return false
}

// newest returns the newest edition.
func (p *generation) newest() store.Edition {
	if p.edition.Number == 0 {
		return p.inherits
	}
	return p.edition
}

// droppable reports whether Compact may drop a generation now. A use may be recorded up to an
// hour late.
func (g *generations) droppable(p *generation) bool {
	unused := g.clock().Sub(p.used)
	return p.replaced || unused > 399*24*time.Hour || unused > 22*time.Hour && p.children > 0 && p != g.last[g.configs[p.config].Base]
}

// update refreshes an open publication.
func (g *generations) update(what string, p *generation) {
	g.Helper()
	limit := max(0, g.rng.IntN(8)-4)
	for more := true; more; {
		var err error
		if more, err = p.Refresh(g.Context(), store.Lease{}, limit, nil); err != nil {
			g.Fatalf("%srefresh: %v", what, err)
		}
	}
	v := g.headOf(p)
	now := &seen{v, g.content(g.configs[p.config].Visibility)}
	p.used, p.looks[v.Site().Seq] = g.clock(), now.look
	if p.head == nil {
		if p.parent != nil {
			earlier := v.Site().Earlier
			want(g.fixture, what+"parent", earlier[len(earlier)-1].Name, p.parent.head.view.Site().Epoch)
		}
	} else if a, b := p.head.view.Site(), v.Site(); b.Seq < a.Seq || b.Seq > a.Seq && !b.Time.After(a.Time) || b.Seq == a.Seq && !maps.Equal(p.head.look, now.look) {
		g.Errorf("%s%d at %v after %d at %v", what, b.Seq, b.Time, a.Seq, a.Time)
	}
	p.before, p.head = p.head, now
}

// cutOffAfter cancels a Refresh after it has computed a number of tags.
func (g *generations) cutOffAfter(p *generation, pages int64) {
	g.Helper()
	ctx, cancel := context.WithCancel(g.Context())
	defer cancel()
	g.cancel = cancel
	g.cut.Store(pages)
	_, err := p.Refresh(ctx, store.Lease{}, g.rng.IntN(2)*4, nil)
	g.cut.Store(0)
	p.used = g.clock()
	switch {
	case err == nil:
		g.update("", p) // the Refresh was complete
	case !errors.Is(err, context.Canceled):
		g.Fatalf("a canceled refresh: %v", err)
	}
}

func (g *generations) publishNext(what string, p *generation) {
	g.Helper()
	if p.head == nil || g.rng.IntN(2) == 0 {
		g.update(what, p)
	}
	v := p.head
	if p.before != nil && p.before.view.Site().Seq >= p.seq && g.rng.IntN(4) == 0 {
		v = p.before
	}
	before := p.newest().Number
	if p.edition = g.publishView(p, v.view); p.edition.Number != before+1 {
		g.Errorf("%sedition %d after %d", what, p.edition.Number, before)
	}
	p.seq, p.used = v.view.Site().Seq, g.clock()
	g.last[g.configs[p.config].Base] = p
}

// compactAfter advances the clock and compacts. Meanwhile, open publications are used or
// closed.
func (g *generations) compactAfter(what string) string {
	g.Helper()
	const day = 24 * time.Hour
	g.pass([]time.Duration{2 * time.Hour, 26 * time.Hour, 8 * day, 30 * day}[g.rng.IntN(4)])
	for i, p := range g.open {
		switch {
		case p == nil:
		case g.rng.IntN(3) > 0:
			g.update(what, p)
		default:
			g.open[i] = nil
		}
	}
	horizon := []time.Duration{time.Hour, 3 * day, 20 * day}[g.rng.IntN(3)]
	g.compact(time.Hour, horizon)
	if h := g.clock().Add(-horizon); h.After(g.horizon) {
		g.horizon = h
	}
	for _, p := range g.open {
		if p != nil && p.before != nil {
			g.compare(what+"a view in use", p.before.view, p.before.look, make(map[string]time.Time))
		}
	}
	return "compact"
}

// check checks every open publication, and the site.
func (g *generations) check(what string) {
	g.Helper()
	g.compare(what+", site", g.siteHead(), g.all(), make(map[string]time.Time))
	manifests := g.manifests()
	newest := make(map[string]bool)
	for _, p := range g.known {
		m := string(p.newest().Manifest)
		if newest[m] = true; m != "" && !slices.Contains(manifests, m) && !g.droppable(p) {
			g.Errorf("%s: manifest %q is missing", what, m)
		}
	}
	for _, m := range manifests {
		want(g.fixture, what+": needed manifest "+m, newest[m], true)
	}
	for _, p := range g.open {
		if p == nil {
			continue
		}
		what := fmt.Sprint(what, ", configuration ", p.config)
		if p.head == nil {
			if _, err := p.Head(g.Context()); !errors.Is(err, millrace.ErrNotFound) {
				g.Errorf("%s: head: %v", what, err)
			}
			continue
		}
		v := g.headOf(p)
		now, head := v.Site(), p.head.view.Site()
		// The home page may be an alias, which is not in a log.
		now.Home, now.Title, now.Language = head.Home, head.Title, head.Language
		want(g.fixture, what+": head", now, head)
		modified := make(map[string]time.Time)
		g.compare(what, v, p.head.look, modified)
		g.compareTags(what, v, p.head.look, modified)
		g.follow(what, p.reader, v, p.head.look, p)
		if p.edition.Number == 0 {
			want(g.fixture, what+": edition", g.unpublished(p), p.inherits)
			continue
		}
		w, e := g.published(p)
		want(g.fixture, what+": edition", []any{e, w.Site().Seq}, []any{p.edition, p.seq})
		g.compare(what+": edition", w, p.looks[p.seq], make(map[string]time.Time))
		want(g.fixture, what+": tagged pages of the edition", w.Site().Tagged["one"], len(p.looks[p.seq]))
		if g.rng.IntN(3) == 0 {
			g.follow(what+": client", g.clients[g.configs[p.config].Base], w, p.looks[p.seq], p)
		}
	}
}
