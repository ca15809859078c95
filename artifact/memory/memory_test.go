package memory

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/artifacttest"
)

func TestStore(t *testing.T) {
	artifacttest.Run(t, func(testing.TB) artifact.Store { return New(nil) })
}

// TestMaxBytes checks the limit on the total size, and that deleted artifacts and failed Puts do
// not count towards it.
func TestMaxBytes(t *testing.T) {
	s := New(&Options{MaxBytes: 10})
	put := func(name, content string) error {
		return s.Put(t.Context(), name, strings.NewReader(content))
	}
	full := func(err error) bool {
		return errors.Is(err, millrace.ErrTooLarge) && millrace.ErrorCode(err) == "memory-full"
	}
	if err := put("large", "0123456789a"); !full(err) {
		t.Errorf("put 11 of 10 bytes: %v", err)
	}
	if err := errors.Join(put("a", "0123"), put("b", "456789"), put("a", "exists already")); err != nil {
		t.Fatal(err)
	}
	if err := put("c", "x"); !full(err) {
		t.Errorf("put into a full store: %v", err)
	}
	for range 2 {
		if err := s.Delete(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	}
	if err := put("d", "456789"); err != nil {
		t.Error(err)
	}
	s = New(&Options{MaxBytes: math.MaxInt64})
	if err := put("a", "0123"); err != nil {
		t.Error(err)
	}
	if info, err := s.Stat(t.Context(), "a"); err != nil || info.Size != 4 {
		t.Errorf("stat: %+v, %v", info, err)
	}
}
