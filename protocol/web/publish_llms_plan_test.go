package web

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// TestPlanEdited checks that a plan edited from an earlier one equals the plan computed from
// all tags, and that the earlier plan does not change.
func TestPlanEdited(t *testing.T) {
	for _, many := range []int{0, 250, 1200} {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			var pages []*millrace.Page
			if many > 0 {
				pages = manyPages(many)
			} else {
				for i := range 30 {
					pages = append(pages, textPage(fmt.Sprintf("/%d/%d", i%3, i), "x"))
				}
			}
			planEdited(t, pages)
		})
	}
}

func planEdited(t *testing.T, pages []*millrace.Page) {
	site := protocoltest.Open(t, store.Config{Base: testSite.Base, EndpointBase: testSite.Base, Taggers: []millrace.Tagger{Protocol().Tagger}}, nil)
	apply := func(batch ...millrace.Change) millrace.View {
		if _, err := site.Apply(t.Context(), "source", batch); err != nil {
			t.Fatal(err)
		}
		v, err := site.Pub.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	put := func(p *millrace.Page) millrace.Change {
		return millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p.Clone()}
	}
	var batch []millrace.Change
	for _, p := range pages {
		p.Title += "title" // long enough to remove bytes
		batch = append(batch, put(p))
	}
	last := apply(batch...)
	var plans plans
	if _, err := plans.of(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(pages))))
	followed := 0
	for step := range 60 {
		batch = nil
		edits := true // the batch only edits pages
		edit := func(p *millrace.Page, what int) {
			switch what {
			default:
				p.Blocks = millrace.TextBlocks(fmt.Sprint("text ", step))
				batch = append(batch, put(p))
				return
			case 5:
				p.Title += "s"
				batch = append(batch, put(p))
				return
			case 6:
				p.Title = p.Title[:max(0, len(p.Title)-1)]
				batch = append(batch, put(p))
				return
			case 7:
				p.Kind = map[millrace.PageKind]millrace.PageKind{"": millrace.Archive}[p.Kind] // archive or ordinary page
			case 8:
				batch = append(batch, millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: p.URL}})
				edits = false
				return
			case 9:
				p = textPage(fmt.Sprintf("/docs/api/new-%d", step), "x")
				pages = append(pages, p)
			}
			edits = false
			batch = append(batch, put(p))
		}
		for _, at := range rng.Perm(len(pages))[:1+rng.IntN(3)] {
			what := rng.IntN(7)
			if step%2 == 0 {
				what = rng.IntN(10)
			}
			if pages[at].URL != "/" {
				edit(pages[at], what)
			}
		}
		before, dirs := plans.last, reflect.ValueOf(plans.last.dirs).Pointer()
		v := apply(batch...)
		got, err := plans.of(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := planOf(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: after %d changes the plan differs from one computed from all tags", step, len(batch))
		}
		if was, err := planOf(t.Context(), last); err != nil || !reflect.DeepEqual(before, was) {
			t.Fatalf("step %d: the plan of the previous view has changed, %v", step, err)
		}
		if reflect.ValueOf(got.dirs).Pointer() == dirs {
			followed++
		} else if edits && v.Site().Tagged[Name] == last.Site().Tagged[Name] && !archives(batch) {
			t.Errorf("step %d: pages were edited, and all tags were read", step)
		}
		last = v
	}
	if followed < 15 || followed == 60 {
		t.Errorf("%d of 60 plans were derived from the previous ones", followed)
	}
}

// archives reports whether one of the pages of a batch is an archive.
func archives(batch []millrace.Change) bool {
	for _, c := range batch {
		if c.Page != nil && c.Page.Kind == millrace.Archive {
			return true
		}
	}
	return false
}

// TestPlanStays checks that a longer title, or one more page in a large folder, leaves nearly
// all files of the folder unchanged.
func TestPlanStays(t *testing.T) {
	var pages []*millrace.Page
	for i := range 2500 { // whose lines have the same length
		pages = append(pages, textPage(fmt.Sprintf("/flat/%04d", i), "x"))
	}
	files := func(pages []*millrace.Page) map[string]bool {
		pl, err := planOf(t.Context(), viewOf(pages...))
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]bool)
		for _, l := range pl.files() {
			var pieces []string
			for _, p := range l.pieces {
				pieces = append(pieces, fmt.Sprintf("%s %x", p.last, p.sum))
			}
			out[fmt.Sprint(l.path, pieces)] = true
		}
		return out
	}
	before := files(pages)
	rng := rand.New(rand.NewPCG(1, 2))
	changed, rounds := 0, 20
	for range rounds {
		at := rng.IntN(len(pages))
		more := slices.Clone(pages)
		if at%2 == 0 {
			more[at] = more[at].Clone()
			more[at].Title += strings.Repeat("s", 30)
		} else {
			more = append(more, textPage(pages[at].URL+"0", "x"))
		}
		for f := range files(more) {
			if !before[f] {
				changed++
			}
		}
	}
	if changed < rounds || changed > 2*rounds {
		t.Errorf("%d changes of one page change %d of %d files", rounds, changed, len(before))
	}
}
