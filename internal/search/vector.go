package search

import (
	"encoding/binary"
	"math"
)

// Vector is the encoded direction of a text in a vector space: one signed byte for each
// dimension, then the inverse of their Euclidean length as a little-endian float32. Vectors of
// different models are not comparable. The similarity of vectors of different sizes is zero.
// A nil vector has no direction.
type Vector []byte

// vectorTail is the size of the float32 after the dimensions.
const vectorTail = 4

// NewVector returns the direction of x. It returns nil if x is empty, has only zeros, or
// contains a NaN or an infinity.
func NewVector(x []float32) Vector {
	var top float64
	for _, f := range x {
		// A NaN differs from itself.
		if f != f || math.IsInf(float64(f), 0) {
			return nil
		}
		top = max(top, math.Abs(float64(f)))
	}
	if top == 0 {
		return nil
	}
	v := make(Vector, len(x)+vectorTail)
	sum := 0
	for i, f := range x {
		// Scale the largest number to 127. With 128 dimensions, the cosine's error is less than
		// 0.005.
		n := int(math.RoundToEven(float64(f) / top * 127))
		v[i] = byte(int8(n))
		sum += n * n
	}
	binary.LittleEndian.PutUint32(v[len(x):], math.Float32bits(float32(1/math.Sqrt(float64(sum)))))
	return v
}

// Dimensions returns the number of dimensions, or 0 for nil.
func (v Vector) Dimensions() int { return max(0, len(v)-vectorTail) }

// Similarity returns the cosine of the angle between a and b, from -1 to 1. It returns 0 if
// either is nil or their sizes differ.
func Similarity(a, b Vector) float64 {
	n := len(a) - vectorTail
	if n <= 0 || len(a) != len(b) {
		return 0
	}
	x, y := a[:n], b[:n]
	var s0, s1, s2, s3 int32
	i := 0
	for ; i+4 <= n; i += 4 {
		p, q := x[i:i+4:i+4], y[i:i+4:i+4]
		s0 += int32(int8(p[0])) * int32(int8(q[0]))
		s1 += int32(int8(p[1])) * int32(int8(q[1]))
		s2 += int32(int8(p[2])) * int32(int8(q[2]))
		s3 += int32(int8(p[3])) * int32(int8(q[3]))
	}
	for ; i < n; i++ {
		s0 += int32(int8(x[i])) * int32(int8(y[i]))
	}
	c := float64(s0+s1+s2+s3) * float64(v32(a[n:])) * float64(v32(b[n:]))
	if c != c {
		return 0 // invalid vector
	}
	return min(1, max(-1, c))
}

// addTo adds v, scaled to a length, to x of the same size.
func (v Vector) addTo(x []float32, length float64) {
	if v.Dimensions() != len(x) || len(x) == 0 {
		return
	}
	unit := float32(length) * v32(v[len(x):])
	for i := range x {
		x[i] += unit * float32(int8(v[i]))
	}
}

func v32(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
