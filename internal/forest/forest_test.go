package forest

import (
	"slices"
	"testing"
)

var sample = []Tree{
	{Splits: []Split{{Feature: 0, Limit: 10, Left: -1, Right: 1}, {Feature: 1, Limit: -5, Left: -2, Right: -3}}, Leaves: []int32{-100, 200, 400}},
	{Splits: []Split{{Feature: 1, Limit: 7, Left: -1, Right: -2}}, Leaves: []int32{30, -50}},
}

func TestScore(t *testing.T) {
	f, err := Parse(Encode(-20, sample), 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x    []int16
		want int32
	}{
		{[]int16{10, 0}, -20 - 100 + 30},
		{[]int16{11, -5}, -20 + 200 + 30},
		{[]int16{11, -4}, -20 + 400 + 30},
		{[]int16{32767, 8}, -20 + 400 - 50},
	} {
		if got := f.Score(c.x); got != c.want {
			t.Errorf("%v: score %d, want %d", c.x, got, c.want)
		}
	}
	// The first tree adds -100 instead of its mean of 100, the second 30 instead of -10.
	if got := f.Explain([]int16{0, 0}); !slices.Equal(got, []int32{-200, 40}) {
		t.Errorf("explained by %v", got)
	}
}

func TestParseRejects(t *testing.T) {
	good := Encode(0, sample)
	for name, table := range map[string]string{
		"no base64":    "?",
		"cut":          good[:len(good)-2],
		"cycle":        Encode(0, []Tree{{Splits: []Split{{Left: 0, Right: -1}}, Leaves: []int32{1, 2}}}),
		"unknown leaf": Encode(0, []Tree{{Splits: []Split{{Left: -9, Right: -1}}, Leaves: []int32{1, 2}}}),
	} {
		if _, err := Parse(table, 2); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Parse(good, 1); err == nil {
		t.Error("feature 1 of 1: no error")
	}
}
