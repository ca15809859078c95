package scp

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// TestDivision checks that updating the sections of an earlier view returns the same sections
// as counting all tags.
func TestDivision(t *testing.T) {
	for _, o := range []*protocol.PublisherOptions{nil, {Own: []any{&PublisherOptions{Sections: []string{"/0", "/1/2"}}}}} {
		sameDivisions(t, NewPublisher(o).(*publisher), NewPublisher(o).(*publisher))
	}
}

// sameDivisions divides each view of a changing site with p, and compares the sections with a
// full count by full.
func sameDivisions(t *testing.T, p, full *publisher) {
	t.Helper()
	site := protocoltest.Open(t, store.Config{Base: "https://x.test/", Taggers: []millrace.Tagger{Protocol().Tagger}}, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	followed := 0
	const steps = 100
	for step := range steps {
		var batch []millrace.Change
		for n := range 1 + rng.IntN(3) + 150*max(0, 1-step) {
			page := &millrace.Page{
				URL: fmt.Sprintf("/%d/%d/%d", rng.IntN(4), rng.IntN(3), rng.IntN(12)), Title: fmt.Sprint("title ", step), Known: millrace.AllFields,
				Detail: millrace.DetailBlocks, Blocks: millrace.TextBlocks(fmt.Sprint("text ", step, n)),
			}
			c := millrace.Change{Ref: millrace.Ref{URL: page.URL}, Page: page}
			switch rng.IntN(12) {
			case 0:
				c = millrace.Change{Kind: millrace.Delete, Ref: c.Ref}
			case 1:
				page.Kind = millrace.Archive
			case 2:
				page.Blocks = nil
			}
			batch = append(batch, c)
		}
		if _, err := site.Apply(t.Context(), "source", batch); err != nil {
			t.Fatal(err)
		}
		v, err := site.Pub.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := reflect.ValueOf(p.last.counts).Pointer()
		list, byKey, err := p.divide(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		full.last = division{} // makes it count all tags
		wantList, wantByKey, err := full.divide(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(list, wantList) || !reflect.DeepEqual(byKey, wantByKey) {
			t.Fatalf("step %d: the sections differ from a full count", step)
		}
		if reflect.ValueOf(p.last.counts).Pointer() == before {
			followed++
		}
		for _, s := range list { // the caller may change the list of its edition
			s.pages, s.touched = 0, true
		}
	}
	if followed < steps/10 || followed == steps {
		t.Errorf("%d of %d divisions were derived from the previous ones", followed, steps)
	}
}
