package main

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/internal/forest"
)

// TestTrain checks that a forest learns a rule of two features, and that the same samples
// give the same table.
func TestTrain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := &samples{x: make([][]int16, 3)}
	for range 2000 {
		a, b, noise := int16(r.IntN(200)), int16(r.IntN(200)), int16(r.IntN(200))
		s.x[0], s.x[1], s.x[2] = append(s.x[0], a), append(s.x[1], b), append(s.x[2], noise)
		s.y, s.weight = append(s.y, a > 100 && b <= 60), append(s.weight, 1)
	}
	o := settings{trees: 20, leaves: 4, rate: .3, lambda: 1, minWeight: 1}
	base, trees := train(s, o)
	table := forest.Encode(base, trees)
	if base, trees = train(s, o); forest.Encode(base, trees) != table {
		t.Error("the second training gives another table")
	}
	f, err := forest.Parse(table, 3)
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i, want := range s.y {
		if (f.Score([]int16{s.x[0][i], s.x[1][i], s.x[2][i]}) > 0) != want {
			wrong++
		}
	}
	if wrong > 40 {
		t.Errorf("%d of %d samples are wrong", wrong, len(s.y))
	}
}
