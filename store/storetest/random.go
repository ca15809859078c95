package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// model is a store as one would write it without a disk: what the sources
// said, which names they have, and what is visible of it.
type model struct {
	raw   map[string]*millrace.Page  // with their weights
	names map[string]map[string]name // source -> its name of a page
}

// name is what a source's name of a page stands for.
type name struct {
	id       string
	mute     bool   // it spoke for nothing
	original string // what its page was made of
}

// look is what a view must show: each page without its date and version.
type look map[string]string

func (m *model) put(from, ref string, p *millrace.Page) {
	names := m.names[from]
	old, known := names[ref]
	id := relative(p.URL)
	names[ref] = name{id, p.Known == 0, string(p.Original)}
	held := m.raw[id]
	if p.Known != 0 && (held != nil || p.Known&(millrace.FieldTitle|millrace.FieldContent) != 0) {
		in := *p
		in.URL = id
		merged, _ := millrace.Merge(held, &in)
		if merged.Weight = in.Weight; held != nil {
			merged.Weight = in.Weight.Or(held.Weight)
		}
		m.raw[id] = merged
	}
	if known && (old.id != id || p.Known == 0 && !old.mute) {
		m.drop(from, old.id, ref)
	}
}

// touch is a Put without a page and without a version.
func (m *model) touch(from, ref string) {
	if n, known := m.names[from][ref]; known {
		n.original = ""
		m.names[from][ref] = n
	} else if m.raw[relative(ref)] != nil {
		m.names[from][ref] = name{id: relative(ref)}
	}
}

func (m *model) remove(from, ref string) {
	old, known := m.names[from][ref]
	if !known {
		old.id = relative(ref)
	}
	delete(m.names[from], ref)
	if !old.mute {
		m.drop(from, old.id, "")
	}
}

// drop takes a name from a page. brought is the one whose page has just come.
func (m *model) drop(from, id, brought string) {
	left := false
	for ref, claimed := range m.names[from] {
		if claimed.id == id && !claimed.mute {
			left = true
			if ref != brought {
				claimed.original = "" // it is asked for again
				m.names[from][ref] = claimed
			}
		}
	}
	if left || m.raw[id] == nil {
		return
	}
	delete(m.raw, id)
	for _, names := range m.names {
		maps.DeleteFunc(names, func(_ string, claimed name) bool { return claimed.id == id })
	}
}

func (m *model) look(v millrace.Visibility) look {
	l := make(look)
	for id, p := range m.raw {
		if shown, ok := v.Apply(p); ok {
			l[id] = describe(shown)
		}
	}
	return l
}

// describe says what a page says, but for its date.
func describe(p *millrace.Page) string {
	c := *p
	c.URL, c.Modified, c.Known = relative(c.URL), time.Time{}, c.Known&^millrace.FieldModified
	return string(c.Canonical())
}

// glance is a view with what it has to show for ever.
type glance struct {
	seq    uint64
	cursor millrace.Cursor
	look   look
}

func randomCase(seed uint64) testCase {
	return testCase{fmt.Sprint("random changes agree with a model, seed ", seed), func(t *testing.T, f *fixture) {
		rng := rand.New(rand.NewPCG(seed, 42))
		f.config.Taggers = []millrace.Tagger{slashes()}
		f.reopen(nil)
		f.derive()
		m := &model{raw: make(map[string]*millrace.Page), names: map[string]map[string]name{"s0": {}, "s1": {}}}
		urls := []string{"/", "/a", "/a/", "/b", "/b/", "/private/c", "/private/d", "/e"}
		pick := func() string { return urls[rng.IntN(len(urls))] }
		modified := make(map[string]time.Time)
		var past []glance
		for step := range 120 {
			from := fmt.Sprint("s", rng.IntN(2))
			// One name in one batch: the order of effects inside one is not part of the contract.
			switch op := rng.IntN(20); {
			case op < 12:
				p := article(pick(), fmt.Sprint("text ", rng.IntN(3)))
				ref := relative(p.URL)
				if rng.IntN(4) == 0 {
					ref = pick()
				}
				switch rng.IntN(6) {
				case 0:
					p.Author, p.Known = fmt.Sprint("Author ", rng.IntN(2)), millrace.FieldAuthor|millrace.FieldSection
					p.Section = fmt.Sprint("s", rng.IntN(2))
				case 1:
					p.Access.NoIndex = true
				case 2:
					p.Known = 0
				case 3:
					p.Modified = f.clock().Add(time.Duration(rng.IntN(7200)-3600) * time.Second)
					p.Known |= millrace.FieldModified
				}
				if n := rng.IntN(4); n > 0 {
					p.Original = fmt.Append(nil, "original ", n)
				}
				if n := rng.Int64N(4); n > 0 {
					p.Weight = millrace.Weight{Bytes: 1000 * n, Received: 300 * rng.Int64N(3)}
				}
				c := put(p)
				c.URL = base + ref[1:]
				f.from(from, c)
				m.put(from, ref, p)
			case op < 16:
				ref := pick()
				if op == 12 {
					f.from(from, millrace.Change{Ref: millrace.Ref{URL: base + ref[1:]}})
					m.touch(from, ref)
					break
				}
				f.from(from, gone(ref))
				m.remove(from, ref)
			case op == 16:
				f.reopen(func(c *store.Config) {
					c.Visibility.Exclude = [][]string{{}, {"/private"}, {"/b"}}[rng.IntN(3)]
					c.Visibility.Authors = []millrace.AuthorDisplay{millrace.AuthorName, millrace.AuthorHidden}[rng.IntN(2)]
				})
				f.derive()
			case op == 17:
				f.compact(time.Hour, 2*time.Hour)
				f.pass(time.Hour)
			default:
				f.pass(time.Duration(rng.IntN(2000)) * time.Millisecond)
			}
			v := f.head()
			now := m.look(f.config.Visibility)
			f.compare(fmt.Sprint("step ", step), v, now, modified)
			for from, names := range m.names {
				for _, u := range urls {
					want(f, fmt.Sprint("step ", step, ": original of ", u, " at ", from), f.original(from, base+u[1:]), names[u].original)
				}
			}
			var weights []string
			var sum, pages int64
			for _, u := range urls {
				var w millrace.Weight
				if p := m.raw[u]; p != nil {
					w = p.Weight
				}
				weights = append(weights, fmt.Sprint(u, " ", w.Bytes, " ", w.Received))
				if _, visible := now[u]; visible && w.Bytes > 0 {
					sum, pages = sum+w.Bytes, pages+1
				}
			}
			want(f, fmt.Sprint("step ", step, ": weights"), f.weights(urls...), weights)
			mean, n, err := f.site.MeanWeight(t.Context())
			if n != pages || mean.Bytes != sum/max(pages, 1) || err != nil {
				t.Errorf("step %d: the mean weight of %d pages is %d, want %d of %d (%v)", step, n, mean.Bytes, sum/max(pages, 1), pages, err)
			}
			_, cursor := f.changes(v, "")
			for _, g := range past {
				f.follow(v, g, now)
			}
			if past = append(past, glance{v.Site().Seq, cursor, now}); len(past) > 6 {
				past = slices.Delete(past, 0, 1+rng.IntN(2))
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}}
}

// compare looks at everything that a view shows.
func (f *fixture) compare(what string, v millrace.View, exp look, modified map[string]time.Time) {
	f.Helper()
	got := make(look)
	sections := make(map[string]int)
	for p, err := range v.Scan(f.Context(), millrace.Scan{Bodies: true}) {
		if err != nil {
			f.Fatalf("%s: %v", what, err)
		}
		id := relative(p.URL)
		if m := p.Modified; m.Before(modified[id]) {
			f.Errorf("%s: %s falls from %v to %v", what, id, modified[id], m)
		}
		modified[id] = p.Modified
		got[id] = describe(p)
		sections[p.Section]++
	}
	want(f, what, got, exp)
	site := v.Site()
	want(f, what+": count", site.Pages, len(exp))
	for _, s := range site.Sections {
		want(f, what+": section "+s.Name, s.Pages, sections[s.Name])
		delete(sections, s.Name)
	}
	delete(sections, "")
	want(f, what+": sections that are not listed", len(sections), 0)
	var tags []string
	for _, id := range slices.Sorted(maps.Keys(exp)) {
		n := 1
		if trimmed, ok := strings.CutSuffix(id, "/"); ok && exp[trimmed] != "" {
			n = 2
		}
		tags = append(tags, fmt.Sprint(id, " ", n))
		want(f, what+": date of the tag", f.tag(v, "one", id).Modified, modified[id])
	}
	want(f, what+": tags", f.tags(v, "one", ""), append(set(), tags...))
}

// follow goes from an earlier view to a later one by the changes between them.
func (f *fixture) follow(v millrace.View, g glance, exp look) {
	f.Helper()
	list, _ := f.changes(v, g.cursor)
	seen := make(map[string]bool)
	for _, c := range list {
		sign, id, _ := strings.Cut(c, "/")
		id = "/" + id
		if seen[id] {
			f.Errorf("since %d: %s twice", g.seq, id)
		}
		seen[id] = true
		_, was := g.look[id]
		_, is := exp[id]
		if want := map[[2]bool]string{{false, true}: "+", {true, true}: "~", {true, false}: "-", {false, false}: "±"}[[2]bool{was, is}]; sign != want {
			f.Errorf("since %d: %s, it was there: %v, it is there: %v", g.seq, c, was, is)
		}
	}
	for id := range exp {
		if exp[id] != g.look[id] && !seen[id] {
			f.Errorf("since %d: %s has changed and is not listed", g.seq, id)
		}
	}
	for id := range g.look {
		if exp[id] == "" && !seen[id] {
			f.Errorf("since %d: %s is gone and is not listed", g.seq, id)
		}
	}
}
