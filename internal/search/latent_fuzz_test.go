package search

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/millrace/millrace"
)

// An accepted model encodes to the same bytes, and its methods work.
func FuzzModel(f *testing.F) {
	m, err := Fit(context.Background(), each(topics(200, 6)), &FitOptions{Dimensions: 3, Vocabulary: 60})
	if err != nil {
		f.Fatal(err)
	}
	encoded, err := m.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded)
	f.Add(encoded[:modelHead])
	f.Add([]byte{modelFormat, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Model
		if err := m.UnmarshalBinary(data); err != nil {
			if !errors.Is(err, millrace.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		back, err := m.MarshalBinary()
		if err != nil || !bytes.Equal(back, data) {
			t.Fatalf("%x, %v, from %x", back, err, data)
		}
		v, known := m.Vector([]string{"t0w1", "t0w1", "common1"})
		if v != nil && (known == 0 || v.Dimensions() != m.Dimensions()) {
			t.Fatalf("%d known, %d dimensions of %d", known, v.Dimensions(), m.Dimensions())
		}
	})
}

// Fit returns a model or an error for any passages. Equal passages produce equal models.
func FuzzFit(f *testing.F) {
	f.Add([]byte("the quick brown fox"), 8, 4)
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 255, 254}, 3, 200)
	f.Fuzz(func(t *testing.T, seed []byte, dimensions, entries int) {
		if len(seed) == 0 || len(seed) > 64 {
			return
		}
		passages := make([][]string, 150)
		for i := range passages {
			for j := range 6 {
				c := seed[(i*(j+3)+j)%len(seed)] + byte(i*j/7)
				passages[i] = append(passages[i], string(rune('a'+c%60)))
			}
		}
		o := &FitOptions{Dimensions: dimensions % 20, Entries: entries % 2000}
		m, err := Fit(t.Context(), each(passages), o)
		if err != nil {
			if !errors.Is(err, millrace.ErrUnavailable) {
				t.Fatal(err)
			}
			return
		}
		again, err := Fit(t.Context(), each(passages), o)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := m.MarshalBinary()
		b, _ := again.MarshalBinary()
		if !bytes.Equal(a, b) {
			t.Fatal("the same passages produce two different models")
		}
		if err := new(Model).UnmarshalBinary(a); err != nil {
			t.Fatal(err)
		}
	})
}
