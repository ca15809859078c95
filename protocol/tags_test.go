package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// tagged is a site in a store, with a protocol that has tags of articles.
type tagged struct {
	*testing.T
	site *protocoltest.Stored
}

func newTagged(t *testing.T) *tagged {
	tagger := millrace.Tagger{Protocol: "protocol", Tag: func(_ millrace.Site, p *millrace.Page) (string, error) {
		if p.Kind == millrace.Archive {
			return "", nil
		}
		return "of " + p.Title, nil
	}}
	return &tagged{t, protocoltest.Open(t, store.Config{Base: "https://e.com/", Taggers: []millrace.Tagger{tagger}}, nil)}
}

// apply applies edits and returns the view after them: "+/a" writes the page /a,
// "*/a" makes an archive of it, "-/a" deletes it.
func (s *tagged) apply(title string, edits ...string) millrace.View {
	s.Helper()
	var batch []millrace.Change
	for _, e := range edits {
		c := millrace.Change{Ref: millrace.Ref{URL: e[1:]}}
		if e[0] == '-' {
			c.Kind = millrace.Delete
		} else {
			c.Page = &millrace.Page{URL: e[1:], Title: title, Known: millrace.AllFields, Detail: millrace.DetailBlocks, Blocks: millrace.TextBlocks("x")}
			if e[0] == '*' {
				c.Page.Kind = millrace.Archive
			}
		}
		batch = append(batch, c)
	}
	if _, err := s.site.Apply(s.Context(), "source", batch); err != nil {
		s.Fatal(err)
	}
	v, err := s.site.Pub.Head(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return v
}

func TestSameTags(t *testing.T) {
	s := newTagged(t)
	first := s.apply("one", "+/a", "+/b", "+/c", "*/z")
	for _, step := range []struct {
		edits   []string
		changed []string
		same    bool
	}{
		{[]string{"+/b"}, []string{"/b"}, true},
		{[]string{"+/c", "+/a"}, []string{"/a", "/c"}, true},
		{nil, nil, true},
		{[]string{"+/d"}, nil, false},
		{[]string{"-/d"}, nil, false},
		{[]string{"*/a", "+/z"}, nil, false}, // the same number of pages, but others
		{[]string{"-/b", "+/e"}, nil, false},
		{[]string{"*/a"}, nil, false},
	} {
		last := first.Site()
		v := s.apply(fmt.Sprint(step.edits, last.Seq), step.edits...)
		changed, same, err := protocol.SameTags(t.Context(), v, "protocol", last)
		if !slices.Equal(changed, step.changed) || same != step.same || err != nil {
			t.Errorf("%q: %q, %v, %v", step.edits, changed, same, err)
		}
		if _, same, err := protocol.SameTags(t.Context(), first, "protocol", v.Site()); same && v.Site().Seq != last.Seq || err != nil {
			t.Errorf("%q: an earlier view has the tags of a later one, %v", step.edits, err)
		}
		first = v
	}
}

// SameTags gives up after 1,000 changes.
func TestSameTagsBound(t *testing.T) {
	s := newTagged(t)
	edits := make([]string, 1001)
	for i := range edits {
		edits[i] = fmt.Sprintf("+/%d", i)
	}
	last := s.apply("one", edits...).Site()
	for n, want := range map[int]bool{1000: true, 1001: false} {
		v := s.apply(fmt.Sprint(n), edits[:n]...)
		if changed, same, err := protocol.SameTags(t.Context(), v, "protocol", last); same != want || err != nil || want && len(changed) != n {
			t.Errorf("%d changes: %d, %v, %v", n, len(changed), same, err)
		}
		last = v.Site()
	}
}

// failing is a view whose changes end in an error.
type failing struct {
	millrace.View
	err error
}

func (v failing) Changes(context.Context, millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) { yield(millrace.Change{}, v.err) }
}

func TestSameTagsErrors(t *testing.T) {
	s := newTagged(t)
	last := s.apply("one", "+/a").Site()
	v := s.apply("two", "+/a")
	for want, cause := range map[error]error{nil: millrace.ErrConflict, context.Canceled: context.Canceled} {
		if _, same, err := protocol.SameTags(t.Context(), failing{v, cause}, "protocol", last); same || !errors.Is(err, want) {
			t.Errorf("%v: %v, %v", cause, same, err)
		}
	}
	for _, other := range []func(*millrace.Site){
		func(s *millrace.Site) { s.Epoch = "other" },
		func(s *millrace.Site) { s.Base = "https://f.com/" },
		func(s *millrace.Site) { s.EndpointBase = "https://f.com/" },
	} {
		site := last
		other(&site)
		if _, same, err := protocol.SameTags(t.Context(), v, "protocol", site); same || err != nil {
			t.Errorf("%+v: %v, %v", site, same, err)
		}
	}
	if _, same, err := protocol.SameTags(t.Context(), v, "protocol", millrace.Site{}); same || err != nil {
		t.Errorf("nothing before: %v, %v", same, err)
	}
}
