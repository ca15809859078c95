package web

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// TestPlanEdited: a plan that follows from the one of an earlier view is the plan
// that all tags give, and leaves that of the earlier view as it was.
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
	site := protocoltest.Open(t, store.Config{Base: testSite.Base, Docs: testSite.Base, Taggers: []millrace.Tagger{Protocol().Tagger}}, nil)
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
		p.Title += "title" // of which a byte can be taken
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
		texts := true // nothing else changes
		edit := func(p *millrace.Page, what int) {
			switch what {
			default:
				p.Blocks = millrace.TextBlocks(fmt.Sprint("text ", step))
				batch = append(batch, put(p))
				return
			case 5:
				p.Title += "s"
			case 6:
				p.Title = p.Title[:max(0, len(p.Title)-1)]
			case 7:
				p.Kind = map[millrace.PageKind]millrace.PageKind{"": millrace.Archive}[p.Kind] // the one or the other
			case 8:
				batch = append(batch, millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: p.URL}})
				texts = false
				return
			case 9:
				p = textPage(fmt.Sprintf("/docs/api/new-%d", step), "x")
				pages = append(pages, p)
			}
			texts = false
			batch = append(batch, put(p))
		}
		if step%4 == 0 { // two neighbours, whose lines are as long as before together
			at := rng.IntN(len(pages) - 1)
			edit(pages[at], 5)
			edit(pages[at+1], 6)
		} else {
			for _, at := range rng.Perm(len(pages))[:1+rng.IntN(3)] {
				what := rng.IntN(5)
				if step%2 == 0 {
					what = rng.IntN(10)
				}
				if pages[at].URL != "/" {
					edit(pages[at], what)
				}
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
			t.Fatalf("step %d: after %d changes the plan differs from that of all tags", step, len(batch))
		}
		if was, err := planOf(t.Context(), last); err != nil || !reflect.DeepEqual(before, was) {
			t.Fatalf("step %d: the plan of the view before has changed, %v", step, err)
		}
		if reflect.ValueOf(got.dirs).Pointer() == dirs {
			followed++
		} else if texts && v.Site().Tagged[Name] == last.Site().Tagged[Name] && !archives(batch) {
			t.Errorf("step %d: a text has changed, and all tags were read", step)
		}
		last = v
	}
	if followed < 15 || followed == 60 {
		t.Errorf("%d of 60 plans follow from those before", followed)
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
