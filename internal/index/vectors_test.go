package index

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace"
)

// topics are lists of words that occur together, and rarely with words of another list.
var topics = [][]string{
	strings.Fields("wheel axle bucket paddle hub spoke bearing gudgeon rim crank shaft sole"),
	strings.Fields("flour grain bran wheat barley sack hopper bolt sieve husk rye germ"),
	strings.Fields("pond sluice leat weir race gate dam spring rain flood brook marsh"),
	strings.Fields("heron otter trout eel vole swan duck newt frog perch pike moth"),
}

// essay returns a page with some of the words of one topic, each once.
func essay(i int) *millrace.Page {
	rng := rand.New(rand.NewPCG(uint64(i), 9))
	topic := topics[i%len(topics)]
	some := rng.Perm(len(topic))[:7]
	var text strings.Builder
	for range 45 {
		if rng.IntN(4) == 0 {
			fmt.Fprintf(&text, "word%d ", rng.IntN(60))
			continue
		}
		text.WriteString(topic[some[rng.IntN(len(some))]] + " ")
	}
	p := article(fmt.Sprintf("/t%d/%03d", i%len(topics), i), text.String())
	p.Title = ""
	p.Blocks = p.Blocks[1:]
	return p
}

func learning(t *testing.T, f *fixture) {
	f.puts("/few")
	f.update()
	if err := f.index.Fit(f.Context(), nil); err != nil {
		t.Errorf("fit too little: %v", err)
	}
	var batch []millrace.Change
	for i := range 600 {
		batch = append(batch, put(essay(i)))
	}
	f.apply(batch...)
	f.update()
	q := millrace.Query{Text: "axle hub crank shaft rim", Limit: 1000, PerPage: 1}
	want(f, "fit is wanted before a search", f.index.FitNeeded(), false)
	plain := f.ask(f.head(), q)
	want(f, "fit is wanted after a search", f.index.FitNeeded(), true)
	done := 0
	fit := func() {
		t.Helper()
		if err := f.index.Fit(f.Context(), func(d, _ int) { done = d }); err != nil {
			t.Fatalf("fit: %v", err)
		}
	}
	fit()
	want(f, "passages", done, 601)
	fitted := f.ask(f.head(), q)
	want(f, "hits", fitted.Total, plain.Total)
	moved := 0
	for i := range fitted.Hits {
		if fitted.Hits[i].URL != plain.Hits[i].URL {
			moved++
		}
	}
	if moved == 0 {
		t.Error("the fitted model changes nothing")
	}
	done = 0
	fit()
	want(f, "passages of an unchanged site", done, 0)
	f.apply(put(essay(600)))
	f.update()
	fit()
	want(f, "passages of a site with few changes", done, 0)
	f.reopen(nil)
	f.apply(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: essay(600).URL}})
	f.update()
	want(f, "as before", f.ask(f.head(), q).Hits[:20], fitted.Hits[:20])
}

// shades is an embedder whose vectors count hashed words. It can fail like a remote embedder.
type shades struct {
	mu    sync.Mutex
	name  string
	size  int
	err   error
	asked int // number of texts of passages
}

func (s *shades) Model() string { return s.name }

func (s *shades) set(change func(s *shades)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *shades) Embed(_ context.Context, query bool, texts []string) (out [][]float32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if !query {
		s.asked += len(texts)
	}
	for _, t := range texts {
		v := make([]float32, s.size)
		v[0] = 0.01
		for _, w := range strings.Fields(strings.ToLower(t)) {
			if w == "heron" {
				w = "bird" // a similarity that only the embedder has
			}
			h := fnv.New32a()
			h.Write([]byte(strings.Trim(w, ".")))
			v[h.Sum32()%uint32(s.size)]++
		}
		out = append(out, v)
	}
	return out, nil
}

func embedding(t *testing.T, f *fixture) {
	model := &shades{name: "shades-1", size: 64}
	f.reopen(func() { f.options.Embedder = model })
	f.apply(put(article("/heron", "A heron stands.")), put(article("/otter", "An otter swims.")), put(article("/wheel", "A wheel turns.")))
	f.update()
	ask := func(what, text, note string, first ...string) {
		t.Helper()
		found := f.ask(f.head(), millrace.Query{Text: text})
		if millrace.ErrorCode(found.Note) != note {
			t.Errorf("%s: note %v", what, found.Note)
		}
		for i, url := range first {
			if i >= len(found.Hits) || relative(found.Hits[i].URL) != url {
				t.Errorf("%s: hit %d is not %s: %+v", what, i, url, found.Hits)
			}
		}
		if len(first) == 0 && len(found.Hits) > 0 {
			t.Errorf("%s: %+v", what, found.Hits)
		}
	}
	fit := func(sentinel error) {
		t.Helper()
		if err := f.index.Fit(f.Context(), nil); !errors.Is(err, sentinel) {
			t.Errorf("fit: %v, not %v", err, sentinel)
		}
	}
	ask("before", "bird", "")
	fit(nil)
	want(f, "asked for", model.asked, 3)
	ask("by similarity", "bird", "", "/heron")
	ask("by words", "otter", "", "/otter")
	model.set(func(s *shades) { s.err = millrace.ErrUnavailable })
	ask("the embedder is down", "otter", "no-embedder", "/otter")
	f.apply(put(article("/owl", "A bird calls.")))
	f.update()
	fit(millrace.ErrUnavailable)
	model.set(func(s *shades) { s.err, s.size = nil, 32 })
	fit(millrace.ErrInvalid)
	ask("another size", "otter", "vector-size", "/otter")
	model.set(func(s *shades) { s.size = 64 })
	fit(nil)
	want(f, "requests for new passages", model.asked, 3+1+1)
	ask("new passages", "bird", "", "/owl", "/heron")
	f.reopen(func() { f.options.Embedder = nil })
	ask("without the embedder", "otter", "other-model", "/otter")
	other := &shades{name: "shades-2", size: 16}
	f.reopen(func() { f.options.Embedder = other })
	ask("another model", "otter", "other-model", "/otter")
	fit(nil)
	want(f, "asked again", other.asked, 4)
	ask("by another model", "bird", "", "/owl")
}

// crowded verifies that deleted pages do not displace the remaining one from the nearest
// passages.
func crowded(_ *testing.T, f *fixture) {
	f.reopen(func() { f.options.Embedder = &shades{name: "shades-1", size: 64} })
	var come, leave []millrace.Change
	for i := range 450 {
		path := fmt.Sprintf("/gone/%03d", i)
		come = append(come, put(article(path, fmt.Sprintf("bird%d bird bird bird bird", i))))
		leave = append(leave, gone(path))
	}
	f.apply(append(come, put(article("/heron", "A heron stands.")))...)
	f.update()
	if err := f.index.Fit(f.Context(), nil); err != nil {
		f.Fatal(err)
	}
	f.apply(leave...)
	f.update()
	want(f, "by similarity", f.search(f.head(), "bird"), set("/heron"))
}
