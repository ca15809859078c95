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
	"github.com/millrace/millrace/internal/testkit"
)

// model is the model of a site. It contains the pages, and the names that each source has for them.
type model struct {
	raw   map[string]*millrace.Page  // pages with their HTML sizes
	names map[string]map[string]name // names by source and by name
}

// name is the model of a source's name for a page.
type name struct {
	id       string
	mute     bool   // the name is an alias
	original string // original of the page
}

// content is the expected content of a view: each page without date and version.
type content map[string]string

func (m *model) put(from, ref string, p *millrace.Page) {
	names := m.names[from]
	old, known := names[ref]
	id := relative(p.URL)
	names[ref] = name{id, p.Known == 0, string(p.Original)}
	stored := m.raw[id]
	if p.Known != 0 && (stored != nil || p.Known&(millrace.FieldTitle|millrace.FieldContent) != 0) {
		in := *p
		in.URL = id
		merged, _ := millrace.Merge(stored, &in)
		if merged.HTMLSize = in.HTMLSize; stored != nil {
			merged.HTMLSize = in.HTMLSize.Or(stored.HTMLSize)
		}
		m.raw[id] = merged
	}
	if known && (old.id != id || p.Known == 0 && !old.mute) {
		m.drop(from, old.id, ref)
	}
}

// touch applies a Put without a page and a version.
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

// drop updates page id after it has lost a name. except is the name whose page is in the batch.
func (m *model) drop(from, id, except string) {
	left := false
	for ref, claimed := range m.names[from] {
		if claimed.id == id && !claimed.mute {
			left = true
			if ref != except {
				claimed.original = "" // the source must fetch the page again
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

func (m *model) content(v millrace.Visibility) content {
	l := make(content)
	for id, p := range m.raw {
		if visible, ok := v.Apply(p); ok {
			l[id] = describe(visible)
		}
	}
	return l
}

// all returns the content of the site's view.
func (m *model) all() content {
	l := make(content)
	for id, p := range m.raw {
		l[id] = describe(p)
	}
	return l
}

// describe returns the content of a page without its date.
func describe(p *millrace.Page) string {
	c := *p
	c.URL, c.Modified, c.Known = relative(c.URL), time.Time{}, c.Known&^millrace.FieldModified
	return string(c.Canonical())
}

// viewContent is a view with its content.
type viewContent struct {
	cursor  millrace.Cursor
	content content
}

// randomURLs are the paths of the pages in random models.
var randomURLs = []string{"/", "/a", "/a/", "/b", "/b/", "/private/c", "/private/d", "/e"}

// mutate applies a random change to the site and the model. A batch has only one name, because
// the contract does not define the order within a batch.
func (m *model) mutate(f *fixture, rng *rand.Rand) {
	pick := func() string { return randomURLs[rng.IntN(len(randomURLs))] }
	from := fmt.Sprint("s", rng.IntN(2))
	switch op := rng.IntN(16); {
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
			p.HTMLSize = millrace.HTMLSize{Bytes: 1000 * n, Received: 300 * rng.Int64N(3)}
		}
		c := put(p)
		c.URL = base + ref[1:]
		f.from(from, c)
		m.put(from, ref, p)
	case op == 12:
		ref := pick()
		f.from(from, millrace.Change{Ref: millrace.Ref{URL: base + ref[1:]}})
		m.touch(from, ref)
	default:
		ref := pick()
		f.from(from, gone(ref))
		m.remove(from, ref)
	}
}

func newModel() *model {
	return &model{raw: make(map[string]*millrace.Page), names: map[string]map[string]name{"s0": {}, "s1": {}}}
}

func randomCases() (cases []testCase) {
	for seed := range uint64(testkit.Size(2, 4, 100)) {
		cases = append(cases, testCase{fmt.Sprint("random changes agree with a model, seed ", seed), func(t *testing.T, f *fixture) {
			randomChanges(t, f, seed)
		}})
	}
	return cases
}

func randomChanges(t *testing.T, f *fixture, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 42))
	f.taggers(slashes())
	m := newModel()
	modified, atSite := make(map[string]time.Time), make(map[string]time.Time)
	var past, pastOfSite []viewContent
	for step := range 120 {
		switch op := rng.IntN(20); {
		case op < 16:
			m.mutate(f, rng)
		case op == 16:
			f.reopen()
		case op == 17:
			f.compact(time.Hour, 15*time.Hour)
			f.pass(2 * time.Hour)
		default:
			f.pass(time.Duration(rng.IntN(2000)) * time.Millisecond)
		}
		what := fmt.Sprint("step ", step)
		now, all := m.content(f.config.Visibility), m.all()
		v, s := f.head(), f.siteHead()
		f.compare(what, v, now, modified)
		f.compareTags(what, v, now, modified)
		f.compare(what+" of the site", s, all, atSite)
		for from, names := range m.names {
			for _, u := range randomURLs {
				want(f, fmt.Sprint(what, ": original of ", u, " at ", from), f.original(from, base+u[1:]), names[u].original)
			}
		}
		m.compareWeights(f, what)
		past = f.followAll(past, v, now)
		if pastOfSite = f.followAll(pastOfSite, s, all); t.Failed() {
			t.Fatalf("seed %d, step %d", seed, step)
		}
	}
}

func (m *model) compareWeights(f *fixture, what string) {
	f.Helper()
	var sizes []string
	var sum, pages int64
	for _, u := range randomURLs {
		var w millrace.HTMLSize
		if p := m.raw[u]; p != nil {
			w = p.HTMLSize
		}
		sizes = append(sizes, fmt.Sprint(u, " ", w.Bytes, " ", w.Received))
		if w.Bytes > 0 {
			sum, pages = sum+w.Bytes, pages+1
		}
	}
	want(f, what+": HTML sizes", f.htmlSizes(randomURLs...), sizes)
	mean, n, err := f.site.MeanHTMLSize(f.Context())
	if n != pages || mean.Bytes != sum/max(pages, 1) || err != nil {
		f.Errorf("%s: the mean HTML size is %d for %d pages, want %d for %d pages (%v)", what, mean.Bytes, n, sum/max(pages, 1), pages, err)
	}
}

// compare checks all content of a view.
func (f *fixture) compare(what string, v millrace.View, exp content, modified map[string]time.Time) {
	f.Helper()
	got := make(content)
	sections := make(map[string]int)
	for p, err := range v.Scan(f.Context(), millrace.Scan{WithBlocks: true}) {
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
}

// compareTags checks the tags of a view.
func (f *fixture) compareTags(what string, v millrace.View, exp content, modified map[string]time.Time) {
	f.Helper()
	tags := set()
	for _, id := range slices.Sorted(maps.Keys(exp)) {
		n := 1
		if trimmed, ok := strings.CutSuffix(id, "/"); ok && exp[trimmed] != "" {
			n = 2
		}
		tags = append(tags, fmt.Sprint(id, " ", n))
		want(f, what+": date of the tag", f.tag(v, "one", id).Modified, modified[id])
	}
	want(f, what+": tags", f.tags(v, "one", ""), tags)
	want(f, what+": tagged", v.Site().Tagged["one"], len(tags))
}

// followAll follows the changes from earlier views to v, and appends v.
func (f *fixture) followAll(past []viewContent, v millrace.View, exp content) []viewContent {
	f.Helper()
	for _, g := range past {
		f.follow(v, g, exp)
	}
	past = append(past, viewContent{f.cursor(v), exp})
	return past[max(0, len(past)-6):]
}

// follow follows the changes from an earlier view to v.
func (f *fixture) follow(v millrace.View, g viewContent, exp content) {
	f.Helper()
	list, _ := f.changes(v, g.cursor)
	seen := make(map[string]bool)
	for _, c := range list {
		sign, id, _ := strings.Cut(c, "/")
		id = "/" + id
		if seen[id] {
			f.Errorf("since %s: %s twice", g.cursor, id)
		}
		seen[id] = true
		_, was := g.content[id]
		_, is := exp[id]
		if want := map[[2]bool]string{{false, true}: "+", {true, true}: "~", {true, false}: "-", {false, false}: "±"}[[2]bool{was, is}]; sign != want {
			f.Errorf("since %s: %s, present before: %v, present now: %v", g.cursor, c, was, is)
		}
	}
	for id := range exp {
		if exp[id] != g.content[id] && !seen[id] {
			f.Errorf("since %s: %s has changed and is not listed", g.cursor, id)
		}
	}
	for id := range g.content {
		if exp[id] == "" && !seen[id] {
			f.Errorf("since %s: %s was deleted and is not listed", g.cursor, id)
		}
	}
}
