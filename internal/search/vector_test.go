package search

import (
	"math"
	"math/rand/v2"
	"testing"
)

func cosine(a, b []float32) float64 {
	var x, y, z float64
	for i := range a {
		x += float64(a[i]) * float64(b[i])
		y += float64(a[i]) * float64(a[i])
		z += float64(b[i]) * float64(b[i])
	}
	return x / math.Sqrt(y*z)
}

func TestSimilarity(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 3, 7, 128, 130, 1024, 3072} {
		a, b := make([]float32, size), make([]float32, size)
		for range 50 {
			part := random.Float32()
			scale := float32(math.Exp(random.NormFloat64() * 20))
			for i := range a {
				a[i] = float32(random.NormFloat64())
				b[i] = (part*a[i] + (1-part)*float32(random.NormFloat64())) * scale
			}
			want := cosine(a, b)
			got := Similarity(NewVector(a), NewVector(b))
			// With few dimensions, rounding errors do not average out.
			if diff := math.Abs(got - want); diff > 0.01 || size >= 128 && diff > 0.005 {
				t.Fatalf("%d dimensions: %.4f, want %.4f", size, got, want)
			}
		}
		if v := NewVector(a); v.Dimensions() != size || Similarity(v, v) < 0.9999 {
			t.Errorf("%d dimensions: %d, with itself %g", size, v.Dimensions(), Similarity(v, v))
		}
	}
	// The sums of the largest vector do not overflow.
	long := make([]float32, 1<<16)
	for i := range long {
		long[i] = 1
	}
	if s := Similarity(NewVector(long), NewVector(long)); s < 0.9999 {
		t.Errorf("a long vector with itself: %g", s)
	}
}

func TestNewVectorRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, x := range [][]float32{nil, {}, {0}, {0, 0, 0}, {1, nan}, {nan, 1}, {inf, 1}} {
		if v := NewVector(x); v != nil {
			t.Errorf("%v: %v", x, v)
		}
	}
	if s := Similarity(NewVector([]float32{1}), NewVector([]float32{1, 0})); s != 0 {
		t.Errorf("vectors of different sizes: %g", s)
	}
	if s := Similarity(nil, nil); s != 0 {
		t.Errorf("vectors without a direction: %g", s)
	}
	// A number whose square underflows in a float32 also has a direction.
	if s := Similarity(NewVector([]float32{1e-30, 0}), NewVector([]float32{1e30, 0})); s < 0.9999 {
		t.Errorf("vectors of very different length: %g", s)
	}
}

// The similarity of damaged vectors is between -1 and 1, and symmetric.
func FuzzSimilarity(f *testing.F) {
	f.Add([]byte(NewVector([]float32{1, 2})), []byte(NewVector([]float32{3, -1})))
	f.Add([]byte{1, 0, 0, 0xc0, 0x7f}, []byte{1, 0, 0, 0x80, 0x7f})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := Similarity(a, b)
		if !(s >= -1 && s <= 1) || s != Similarity(b, a) {
			t.Fatalf("%v and %v: %g, %g", a, b, s, Similarity(b, a))
		}
	})
}

func BenchmarkSimilarity(b *testing.B) {
	x := make([]float32, 128)
	for i := range x {
		x[i] = float32(i%13) - 5
	}
	v := NewVector(x)
	for b.Loop() {
		Similarity(v, v)
	}
}
