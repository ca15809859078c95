package search

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// An accepted response has one vector per text, all of one size and of length 1.
func FuzzEmbeddings(f *testing.F) {
	f.Add(`{"data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":[3,-4e-3]}]}`, 2)
	f.Add(`{"data":[{"embedding":[1]}]}`, 1)
	f.Add(`{"data":[{"index":0,"embedding":[null]}]}`, 1)
	f.Add(`{"data":[{"index":0,"embedding":[1e38,1e38]}]}`, 1)
	f.Add(`{"data":[{"index":0,"embedding":[1e-45]}]}`, 1)
	f.Add(`{"data":[]}`, 0)
	f.Fuzz(func(t *testing.T, answer string, n int) {
		if n < 1 || n > 100 {
			return
		}
		size := 0
		vectors, err := decodeEmbeddings(strings.NewReader(answer), n, &size)
		if err != nil {
			if !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		if len(vectors) != n {
			t.Fatalf("%d vectors for %d texts", len(vectors), n)
		}
		for _, v := range vectors {
			sum := 0.0
			for _, x := range v {
				sum += float64(x) * float64(x)
			}
			if len(v) != size || math.Abs(sum-1) > 1e-3 || NewVector(v) == nil {
				t.Fatalf("%v: %d dimensions of %d, length %g", v, len(v), size, math.Sqrt(sum))
			}
		}
	})
}
