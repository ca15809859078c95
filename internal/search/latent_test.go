package search

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// topics returns passages of a few topics. Each passage has some of its topic's words, and
// words that all passages share.
func topics(n int, seed uint64) [][]string {
	random := rand.New(rand.NewPCG(seed, 1))
	out := make([][]string, n)
	for i := range out {
		topic := i % 8
		for range 40 {
			if random.IntN(4) == 0 {
				out[i] = append(out[i], fmt.Sprintf("common%d", random.IntN(300)))
			} else {
				out[i] = append(out[i], fmt.Sprintf("t%dw%d", topic, random.IntN(60)))
			}
		}
	}
	return out
}

func each(passages [][]string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for _, p := range passages {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func fit(t *testing.T, passages [][]string, o *FitOptions) *Model {
	t.Helper()
	m, err := Fit(t.Context(), each(passages), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func marshal(t *testing.T, m *Model) []byte {
	t.Helper()
	b, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Words of one topic are similar even if no passage has both.
func TestFitTopics(t *testing.T) {
	passages := topics(800, 1)
	for i, p := range passages {
		// No passage has both t0w0 and t0w1.
		if i%16 == 0 {
			passages[i] = slices.DeleteFunc(p, func(w string) bool { return w == "t0w0" })
		} else {
			passages[i] = slices.DeleteFunc(p, func(w string) bool { return w == "t0w1" })
		}
	}
	m := fit(t, passages, &FitOptions{Dimensions: 16})
	vector := func(terms string) Vector {
		v, known := m.Vector(strings.Fields(terms))
		if v == nil || known != len(strings.Fields(terms)) {
			t.Fatalf("%q: %d known, vector %v", terms, known, v)
		}
		return v
	}
	if same := Similarity(vector("t0w0"), vector("t0w1")); same < 0.3 {
		t.Errorf("words of a topic: %.3f", same)
	}
	if other := Similarity(vector("t0w0"), vector("t1w1")); other > 0.2 {
		t.Errorf("words of different topics: %.3f", other)
	}
	if v, known := m.Vector([]string{"never", "seen"}); v != nil || known != 0 {
		t.Errorf("unknown words: %v, %d", v, known)
	}
	if m.Known("never") || !m.Known("t3w3") {
		t.Error("Known returned a wrong result")
	}
}

// The same passages in any order and on any number of cores produce the same bytes, whether
// sampled or not.
func TestFitRepeats(t *testing.T) {
	passages := topics(800, 2)
	for _, o := range []*FitOptions{{}, {Entries: 9000, Vocabulary: 200}} {
		want := marshal(t, fit(t, passages, o))
		other := slices.Concat(passages, passages[:300])
		rand.New(rand.NewPCG(3, 3)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		for i, p := range other {
			other[i] = slices.Clone(p)
			slices.Reverse(other[i])
		}
		before := runtime.GOMAXPROCS(1)
		got := marshal(t, fit(t, other, o))
		runtime.GOMAXPROCS(before)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: a different model", *o)
		}
	}
}

func TestFitBounds(t *testing.T) {
	m := fit(t, topics(2000, 4), &FitOptions{Entries: 5000, Vocabulary: 100, Dimensions: 20})
	if len(m.terms) > 100 || m.Dimensions() > 20 {
		t.Errorf("%d terms, %d dimensions", len(m.terms), m.Dimensions())
	}
	s := newSample(5000)
	for _, p := range topics(2000, 4) {
		s.add(p)
		if s.count > 5000 {
			t.Fatalf("%d entries are stored", s.count)
		}
	}
	if s.level == 0 || s.count < 2000 {
		t.Errorf("level %d with %d entries", s.level, s.count)
	}
}

func TestFitRefuses(t *testing.T) {
	broken := errors.New("the disk has failed")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	same := slices.Repeat([][]string{{"a", "b"}}, 5000)
	alone := make([][]string, 500)
	for i := range alone {
		alone[i] = []string{fmt.Sprint("x", i), fmt.Sprint("y", i)}
	}
	for name, c := range map[string]struct {
		ctx      context.Context
		passages iter.Seq2[[]string, error]
		want     error
	}{
		"nothing":       {t.Context(), each(nil), millrace.ErrUnavailable},
		"empty":         {t.Context(), each(make([][]string, 500)), millrace.ErrUnavailable},
		"few":           {t.Context(), each(topics(50, 1)), millrace.ErrUnavailable},
		"one, repeated": {t.Context(), each(same), millrace.ErrUnavailable},
		"no shared":     {t.Context(), each(alone), millrace.ErrUnavailable},
		"canceled":      {canceled, each(topics(500, 1)), context.Canceled},
		"broken": {t.Context(), func(yield func([]string, error) bool) {
			if yield([]string{"a", "b"}, nil) {
				yield(nil, broken)
			}
		}, broken},
	} {
		if m, err := Fit(c.ctx, c.passages, nil); !errors.Is(err, c.want) || m != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestModelRoundTrip(t *testing.T) {
	m := fit(t, topics(400, 5), &FitOptions{Dimensions: 12})
	encoded := marshal(t, m)
	var back Model
	if err := back.UnmarshalBinary(encoded); err != nil {
		t.Fatal(err)
	}
	a, _ := m.Vector([]string{"t1w1", "t1w2", "t1w2", "common4"})
	b, _ := back.Vector([]string{"t1w2", "common4", "t1w1", "t1w2"})
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(marshal(t, &back), encoded) {
		t.Error("the bytes differ")
	}
	for name, data := range map[string][]byte{
		"empty":     {},
		"short":     encoded[:len(encoded)-1],
		"long":      append(slices.Clone(encoded), 0),
		"format":    append([]byte{99}, encoded[1:]...),
		"no width":  append([]byte{modelFormat, 0, 0}, encoded[3:]...),
		"no terms":  {modelFormat, 1, 0, 0, 0, 0, 0},
		"unordered": slices.Concat(encoded[:modelHead], encoded[modelHead+8:modelHead+16], encoded[modelHead:modelHead+8], encoded[modelHead+16:]),
	} {
		err := new(Model).UnmarshalBinary(data)
		if !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
