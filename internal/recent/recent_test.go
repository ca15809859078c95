package recent

import (
	"fmt"
	"testing"
)

func TestValues(t *testing.T) {
	var r Values
	for i := range 3 * MaxValues {
		r.Add(fmt.Sprint(i), fmt.Sprint("v", i))
	}
	if len(r.of) > MaxValues || len(r.ring) != MaxValues {
		t.Errorf("%d names are stored", len(r.of))
	}
	last := fmt.Sprint(3*MaxValues - 1)
	for range 2 {
		if v, ok := r.Get(last); !ok || v != "v"+last {
			t.Errorf("the last value is %q", v)
		}
	}
	if v, ok := r.Take(last); !ok || v != "v"+last {
		t.Errorf("the last value is %q", v)
	}
	if _, ok := r.Take(last); ok {
		t.Error("a taken value is still stored")
	}
	if _, ok := r.Get("0"); ok {
		t.Error("the first value is still stored")
	}
}
