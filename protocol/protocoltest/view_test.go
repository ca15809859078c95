package protocoltest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// The view in memory fulfills the contract of millrace.View as strictly as a store.
func TestView(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	tagger := millrace.Tagger{
		Protocol: "protocol",
		Tag: func(_ millrace.Site, p *millrace.Page) (string, error) {
			if p.Kind == millrace.Archive {
				return "", nil
			}
			return "v" + p.Title, nil
		},
		Conflicts: func(id string) (before, after []string) {
			if id == "/b/" {
				return []string{"/b"}, nil
			}
			return nil, nil
		},
	}
	v := protocoltest.NewView(millrace.Site{Base: "https://e.com/"}, []*millrace.Page{
		{URL: "/c", Title: "c", Published: day(1), Section: "s"},
		{URL: "https://e.com/b/", Title: "b2", Published: day(2), Blocks: millrace.TextBlocks("x")},
		{URL: "/b", Title: "b", Kind: millrace.Archive},
		{URL: "https://f.com/", Title: "f", Modified: day(9), Section: "s"},
	}, tagger)
	ctx := t.Context()
	scan := func(s millrace.Scan) []string {
		var out []string
		for p, err := range v.Scan(ctx, s) {
			if err != nil || !s.WithBlocks && p.Blocks != nil {
				t.Fatal(p, err)
			}
			out = append(out, p.Title)
		}
		return out
	}
	for _, c := range []struct {
		scan millrace.Scan
		want []string
	}{
		{millrace.Scan{}, []string{"b", "b2", "c", "f"}},
		{millrace.Scan{Order: millrace.ByPublished}, []string{"b2", "c", "b", "f"}},
		{millrace.Scan{Order: millrace.BySeq, Limit: 1}, []string{"f"}},
		{millrace.Scan{After: "/b/", Limit: 1}, []string{"c"}},
		{millrace.Scan{Section: "s", WithBlocks: true}, []string{"c", "f"}},
	} {
		if got := scan(c.scan); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.scan, got, c.want)
		}
	}
	if tag, err := v.Tag(ctx, "protocol", "/b/"); err != nil || tag.N != 2 || tag.Value != "vb2" || tag.URL != "https://e.com/b/" {
		t.Errorf("%+v %v", tag, err)
	}
	if _, err := v.Tag(ctx, "protocol", "https://e.com/b"); !errors.Is(err, millrace.ErrNotFound) {
		t.Error(err)
	}
	var tags []string
	for tag, err := range v.Tags(ctx, "protocol", "/b") {
		if err != nil {
			t.Fatal(err)
		}
		tags = append(tags, tag.Value)
	}
	if !slices.Equal(tags, []string{"vb2", "vc", "vf"}) {
		t.Errorf("tags %q", tags)
	}
	p, err := v.Page(ctx, millrace.Ref{URL: "/b/"})
	if err != nil || p.URL != "https://e.com/b/" || len(p.Blocks) != 1 {
		t.Fatal(p, err)
	}
	if _, err := v.Page(ctx, millrace.Ref{URL: "/b/", Version: p.Version}); !errors.Is(err, millrace.ErrUnmodified) {
		t.Error(err)
	}
	if _, err := v.Page(ctx, millrace.Ref{URL: "/x"}); !errors.Is(err, millrace.ErrNotFound) {
		t.Error(err)
	}
	var cursor millrace.Cursor
	n := 0
	for c, err := range v.Changes(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		if n++; c.Kind == millrace.KindCheckpoint && c.Checkpoint.Complete {
			cursor = c.Checkpoint.Cursor
		}
	}
	if n != 5 || cursor == "" {
		t.Errorf("%d changes, cursor %q", n, cursor)
	}
	for c, err := range v.Changes(ctx, cursor) {
		if err != nil || c.Kind != millrace.KindCheckpoint || c.Checkpoint.Complete {
			t.Errorf("%+v %v", c, err)
		}
	}
	for _, err := range v.Changes(ctx, "other:1") {
		if !errors.Is(err, millrace.ErrConflict) {
			t.Error(err)
		}
	}
}

// The generated sites have the features that Pages describes.
func TestPages(t *testing.T) {
	types, seen := map[millrace.BlockType]bool{}, map[string]bool{}
	var walk func([]millrace.Block)
	walk = func(blocks []millrace.Block) {
		for _, b := range blocks {
			types[b.Type] = true
			walk(b.Blocks)
		}
	}
	for seed := range uint64(12) {
		for _, p := range protocoltest.Pages(seed) {
			seen[p.URL] = true
			walk(p.Blocks)
		}
	}
	if len(types) != 15 {
		t.Errorf("block types: %v", types)
	}
	for _, u := range []string{"/", "/post", "/post/", "/taken/llm.json", "https://elsewhere.example/p", "/q/?x=1"} {
		if !seen[u] {
			t.Errorf("no site has %s", u)
		}
	}
}

// The next view has a log of its changes, as in a store.
func TestThen(t *testing.T) {
	at := func(h int) time.Time { return time.Date(2026, 1, 1, h, 0, 0, 0, time.UTC) }
	page := func(u, title string) *millrace.Page {
		return &millrace.Page{URL: u, Title: title, Modified: at(0), Known: millrace.AllFields}
	}
	one := protocoltest.NewView(millrace.Site{Base: "https://e.com/"}, []*millrace.Page{page("/a", "a"), page("/b", "b"), page("/c", "c")})
	two := one.Next(at(1), []*millrace.Page{page("/a", "a"), page("/b", "other"), page("/d", "d")})
	three := two.Next(at(2), []*millrace.Page{page("/a", "a"), page("/b", "third"), page("/c", "again"), page("/d", "d")})
	changes := func(v *protocoltest.View, since millrace.Cursor) (out []string) {
		for c, err := range v.Changes(t.Context(), since) {
			switch {
			case err != nil:
				return append(out, err.Error())
			case c.Kind == millrace.KindCheckpoint:
				if c.Checkpoint.Cursor != v.Site().At(v.Site().Seq) || c.Checkpoint.Complete {
					t.Errorf("%+v", c.Checkpoint)
				}
			default:
				title := ""
				if c.Page != nil {
					title = c.Page.Title
				}
				out = append(out, fmt.Sprint(c.Kind, " ", c.URL[len("https://e.com"):], " ", title, " ", c.New, " ", c.Time.Hour()))
			}
		}
		return out
	}
	for _, c := range []struct {
		v    *protocoltest.View
		from uint64
		want []string
	}{
		{two, 1, []string{"0 /b other false 1", "1 /c  false 1", "0 /d d true 1"}},
		{three, 2, []string{"0 /b third false 2", "0 /c again true 2"}},
		{three, 1, []string{"0 /d d true 1", "0 /b third false 2", "0 /c again true 2"}},
		{three, 3, nil},
	} {
		if got := changes(c.v, c.v.Site().At(c.from)); !slices.Equal(got, c.want) {
			t.Errorf("%d from %d: %q, want %q", c.v.Site().Seq, c.from, got, c.want)
		}
	}
	for h, want := range []uint64{1, 2, 3, 3} {
		if got, err := three.SeqAt(t.Context(), at(h).Add(time.Minute)); got != want || err != nil {
			t.Errorf("at %d: %d, %v", h, got, err)
		}
	}
	if got, err := three.SeqAt(t.Context(), at(0).Add(-time.Minute)); got != 0 || err != nil {
		t.Errorf("before: %d, %v", got, err)
	}
}
