package store

import (
	"reflect"
	"testing"
)

// Numbers returns a pointer to every field, each exactly once.
func TestTrafficNumbers(t *testing.T) {
	var all, twice Traffic
	for i, n := range all.Numbers() {
		*n = int64(i + 1)
	}
	v := reflect.ValueOf(all)
	for i := range v.NumField() {
		if got := v.Field(i).Int(); got != int64(i+1) {
			t.Errorf("%s is number %d, want %d", v.Type().Field(i).Name, got, i+1)
		}
	}
	twice.Add(all)
	twice.Add(all)
	twice.Sub(all)
	if twice != all {
		t.Errorf("%+v, want %+v", twice, all)
	}
}
