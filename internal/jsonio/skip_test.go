package jsonio

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/millrace/millrace"
)

// A walk continues after a value that is too long to read, whatever its length.
func TestTooLong(t *testing.T) {
	for _, n := range []int{12, 30_000, 200_000} {
		doc := "{\"items\":[{\"etag\":\"a\"},\n{\"etag\":\"b\",\"more\":[" + strings.Repeat("{\"x\":\"yz\"},\n", n) + "0]},{\"etag\":\"c\"}],\"version\":1}"
		for _, in := range []io.Reader{strings.NewReader(doc), iotest.HalfReader(strings.NewReader(doc))} {
			r, got, version := NewReader(in, &Limits{Value: 100}), "", 0
			for name, err := range r.Members() {
				if err != nil {
					t.Fatal(n, err)
				}
				if name == "version" {
					if err := r.Decode(&version); err != nil {
						t.Fatal(n, err)
					}
					continue
				}
				for i, err := range r.Elements() {
					if err != nil {
						t.Fatal(n, err)
					}
					var it item
					err = r.Decode(&it)
					if i == 1 {
						refused(t, fmt.Sprint(n), err, millrace.ErrTooLarge, "line 2, byte 24 (/items/1)", "json-value")
					} else if err != nil {
						t.Fatal(n, err)
					}
					got += it.ETag
				}
			}
			if got != "ac" || version != 1 {
				t.Errorf("%d: %q, version %d", n, got, version)
			}
		}
	}
}

// The walk ends at a string that is too long, and at an error in a skipped value.
func TestTooLongEnds(t *testing.T) {
	many := strings.Repeat(`{"x":"yz"},`, 30_000)
	for doc, want := range map[string]error{
		`[["` + strings.Repeat("x", 200_000) + `"],1]`: millrace.ErrTooLarge,
		`[[` + many + `],1]`:                           millrace.ErrInvalid,
		`[[` + many + `{"x":1,"x":2}],1]`:              millrace.ErrInvalid,
		`[[` + many:                                    millrace.ErrInvalid,
	} {
		r := NewReader(strings.NewReader(doc), &Limits{Value: 100})
		var last error
		n := 0
		for _, err := range r.Elements() {
			n++
			if last = err; err != nil {
				break
			}
			if _, err := r.Raw(); !errors.Is(err, millrace.ErrTooLarge) {
				t.Errorf("%.10s: %v", doc, err)
			}
		}
		if !errors.Is(last, want) || n > 2 {
			t.Errorf("%.10s: %v after %d, want %v", doc, last, n, want)
		}
		if _, err := r.Raw(); !errors.Is(err, want) {
			t.Errorf("%.10s: afterwards: %v", doc, err)
		}
	}
}
