package extract

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
)

// Template gives what was learned, nil if there were fewer than 10 distinct
// pages: those with mostly the same text count once.
//
// The root is the element that most pages lead to alone; or another one that
// two thirds of the pages have, if that leaves out a tenth of the words but
// none that only one page has, or if most pages lead nowhere in common. Parts
// of the template are groups of two texts or more, with links or without, that
// stand word for word, once, on a fifth of the pages, of documentation on half
// of them, and on 3 at least. A text alone, tables, code, call-outs and lists
// of facts are never parts, nor are headings without what they stand above.
func (l *Learner) Template() *Template {
	s := &comparison{pages: distinct(l.pages)}
	if len(s.pages) < minLearned {
		return nil
	}
	t := &Template{Pages: len(s.pages)}
	s.root(t)
	s.repeated(t)
	return t
}

// comparison is of the outlines of distinct pages.
type comparison struct {
	pages []*outline
}

// distinct leaves out pages that have most of their text in common with one
// before. What half of all pages have does not count.
func distinct(pages []*outline) []*outline {
	texts := map[uint64]bool{}
	pages = slices.DeleteFunc(slices.Clone(pages), func(p *outline) bool {
		h := uint64(0)
		for _, t := range p.texts[p.own.from:p.own.to] {
			h = h*1099511628211 + t.hash
		}
		known := texts[h]
		texts[h] = true
		return known
	})
	on := spread(pages)
	var out []*outline
	var seen []map[uint64]bool
	for _, p := range pages {
		own, total := map[uint64]bool{}, int32(0)
		for _, t := range p.texts[p.own.from:p.own.to] {
			if n := on[t.hash]; n < 3 || n*2 < len(pages) {
				own[t.hash] = true
				total += t.words
			}
		}
		known := slices.ContainsFunc(seen, func(o map[uint64]bool) bool {
			common := int32(0)
			for _, t := range p.texts[p.own.from:p.own.to] {
				if own[t.hash] && o[t.hash] {
					common += t.words
				}
			}
			return common*5 >= total*3
		})
		if !known && total > 0 {
			out, seen = append(out, p), append(seen, own)
		}
	}
	return out
}

// spread counts the pages that each text is on.
func spread(pages []*outline) map[uint64]int {
	on := map[uint64]int{}
	for _, p := range pages {
		here := map[uint64]bool{}
		for _, t := range p.texts {
			if !here[t.hash] {
				here[t.hash] = true
				on[t.hash]++
			}
		}
	}
	return on
}

// weight is what a run of texts has.
type weight struct {
	words int32
	only  int32 // that no other page has
	plain int32 // of them, those outside of links
}

// weights gives the sums of a page's texts before each.
func (p *outline) weights(on map[uint64]int) []weight {
	sums := make([]weight, len(p.texts)+1)
	for i, t := range p.texts {
		w := sums[i]
		w.words += t.words
		if on[t.hash] == 1 {
			w.only += t.words
			w.plain += t.plain
		}
		sums[i+1] = w
	}
	return sums
}

func (s scope) weight(sums []weight) weight {
	a, b := sums[s.from], sums[s.to]
	return weight{b.words - a.words, b.only - a.only, b.plain - a.plain}
}

// fitting is how a selector does as the root of all pages.
type fitting struct {
	name             string
	fits             int   // pages that it means one element on, with nearly all of their own text
	same             int   // of them, those that lead to it alone
	words            int64 // inside, on these pages
	only, plain      int64
	allOnly, allText int64 // what only and plain are of
}

// root finds the root that the pages have in common.
func (s *comparison) root(t *Template) {
	on := spread(s.pages)
	pages := 0
	by := map[string]*fitting{}
	for _, p := range s.pages {
		sums := p.weights(on)
		all, own := sums[len(p.texts)], p.own.weight(sums)
		if all.plain < 20 {
			continue // it says nothing of its own
		}
		pages++
		for _, r := range p.roots {
			w := r.weight(sums)
			if w.plain*10 < all.plain*9 || !agrees(r.from, p.own.from, r.to, p.own.to, w.words, own.words) {
				continue
			}
			for _, name := range r.names {
				f := by[name]
				if f == nil {
					f = &fitting{name: name}
					by[name] = f
				}
				f.fits++
				if r.scope == p.own {
					f.same++
				}
				f.words += int64(w.words)
				f.only, f.allOnly = f.only+int64(w.only), f.allOnly+int64(all.only)
				f.plain, f.allText = f.plain+int64(w.plain), f.allText+int64(all.plain)
			}
		}
	}
	var common, tight *fitting
	for _, f := range slices.SortedFunc(maps.Values(by), (*fitting).compare) {
		if f.fits*3 < pages*2 {
			continue
		}
		if f.same*2 >= pages && (common == nil || f.same > common.same) {
			common = f
		}
		if f.plain*1000 >= f.allText*998 && f.only*10 >= f.allOnly*9 && (tight == nil || f.perPage() < tight.perPage()) {
			tight = f
		}
	}
	f := common
	if common == nil || tight != nil && tight.perPage()*10 <= common.perPage()*9 {
		f = tight
	}
	if f != nil {
		t.Root, t.RootPages, t.Differs = f.name, f.fits, f.fits-f.same
	}
}

func (f *fitting) perPage() int64 { return f.words / int64(f.fits) }

// compare puts the selectors first that mean an element on more pages, and of
// those the ones that are read most easily.
func (f *fitting) compare(o *fitting) int {
	return cmp.Or(cmp.Compare(o.fits, f.fits), cmp.Compare(strings.Count(f.name, ">"), strings.Count(o.name, ">")),
		cmp.Compare(len(f.name), len(o.name)), strings.Compare(f.name, o.name))
}

// region gives the texts that are content on a page by the root of a template.
func (p *outline) region(t *Template) scope {
	if t.hasRoot() {
		for _, r := range p.roots {
			words := func(s scope) (n int32) {
				for _, t := range p.texts[s.from:s.to] {
					n += t.words
				}
				return n
			}
			if slices.Contains(r.names, t.Root) && agrees(r.from, p.own.from, r.to, p.own.to, words(r.scope), words(p.own)) {
				return r.scope
			}
		}
	}
	return p.own
}

// repeated finds the parts that come back.
func (s *comparison) repeated(t *Template) {
	once, more, manuals := map[uint64]int{}, map[uint64]int{}, 0
	for _, p := range s.pages {
		if p.kind == millrace.Documentation {
			manuals++
		}
		times := map[uint64]int{}
		for _, r := range p.partsIn(p.region(t)) {
			times[r.hash]++
		}
		for h, n := range times {
			if n == 1 {
				once[h]++
			} else {
				more[h]++
			}
		}
	}
	need := max(3, (len(s.pages)+4)/5)
	if manuals*2 >= len(s.pages) { // a manual says the same of many things
		need = max(3, (len(s.pages)+1)/2)
	}
	found, named := map[uint64]*Repeated{}, map[uint64]map[string]int{}
	for _, p := range s.pages {
		behind := int32(-1)
		for _, r := range p.partsIn(p.region(t)) {
			if r.from < behind || once[r.hash] < need || more[r.hash]*4 > once[r.hash] {
				continue
			}
			behind = r.to
			if named[r.hash] == nil {
				named[r.hash] = map[string]int{}
			}
			for _, name := range r.names {
				named[r.hash][name]++
			}
			part := Repeated{Selector: r.selector, Text: r.text, Words: int(r.words), Pages: once[r.hash], Hash: strconv.FormatUint(r.hash, 36)}
			if old := found[r.hash]; old == nil || part.compare(old) < 0 {
				found[r.hash] = &part
			}
		}
	}
	for h, r := range found {
		r.Selector = cmp.Or(bestName(named[h]), r.Selector)
	}
	t.Repeated = make([]Repeated, 0, len(found))
	for _, r := range slices.SortedFunc(maps.Values(found), (*Repeated).compare) {
		if len(t.Repeated) < maxRepeated {
			t.Repeated = append(t.Repeated, *r)
		}
	}
}

// bestName gives the selector that means a part alone on most pages.
func bestName(pages map[string]int) string {
	best := ""
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if n := pages[name] - pages[best]; best == "" || n > 0 || n == 0 && len(name) < len(best) {
			best = name
		}
	}
	return best
}

// partsIn gives the parts inside a run of texts, the outer ones first.
func (p *outline) partsIn(s scope) []partOutline {
	var in []partOutline
	for _, r := range p.parts {
		if s.holds(r.scope) && r.scope != s {
			in = append(in, r)
		}
	}
	return in
}

// compare puts the parts first that are on more pages and have more words.
func (r *Repeated) compare(o *Repeated) int {
	return cmp.Or(cmp.Compare(o.Pages, r.Pages), cmp.Compare(o.Words, r.Words), cmp.Compare(len(r.Selector), len(o.Selector)),
		strings.Compare(r.Selector, o.Selector), strings.Compare(r.Text, o.Text), strings.Compare(r.Hash, o.Hash))
}
