package search

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

// embeddingsRequest is the body of POST /v1/embeddings.
type embeddingsRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Format     string   `json:"encoding_format"`
	Dimensions int      `json:"dimensions,omitempty"`
}

// embeddingsAnswer is the body of the response.
type embeddingsAnswer struct {
	Data []struct {
		Index     *int     `json:"index"`
		Embedding []finite `json:"embedding"`
	} `json:"data"`
}

// finite is a finite number. Servers encode infinities and NaN as null.
type finite float32

// UnmarshalJSON rejects null and numbers that a float32 cannot hold.
func (f *finite) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(string(b), 32)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return fmt.Errorf("vector component %.40s is not a finite number", b)
	}
	*f = finite(n)
	return nil
}

// decodeEmbeddings decodes the response for n texts. The vectors are in the order of the texts and
// have Euclidean norm 1. All vectors must have *size dimensions. If *size is 0, the first vector
// sets it.
func decodeEmbeddings(r io.Reader, n int, size *int) ([][]float32, error) {
	var a embeddingsAnswer
	limits := &jsonio.Limits{Size: int64(n)*maxVectorJSON + 64<<10}
	if err := jsonio.Decode(r, limits, &a); err != nil {
		return nil, err
	}
	broken := func(code, format string, args ...any) error {
		return &millrace.FormatError{Position: "/data", Code: code, Reason: fmt.Sprintf(format, args...)}
	}
	if len(a.Data) != n {
		return nil, broken("vector-count", "%d vectors for %d texts", len(a.Data), n)
	}
	out := make([][]float32, n)
	for i, d := range a.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		} else if a.Data[0].Index != nil {
			return nil, broken("vector-index", "vector %d has no index, but the first has one", i)
		}
		if at < 0 || at >= n || out[at] != nil {
			return nil, broken("vector-index", "duplicate or invalid index %d of vector %d", at, i)
		}
		if *size == 0 {
			*size = len(d.Embedding)
		}
		if len(d.Embedding) != *size || *size == 0 {
			return nil, broken("vector-size", "vector %d has %d dimensions, not %d", i, len(d.Embedding), *size)
		}
		if out[at] = unitVector(d.Embedding); out[at] == nil {
			return nil, broken("vector-zero", "vector %d is zero", i)
		}
	}
	return out, nil
}

// unitVector returns x scaled to Euclidean norm 1, or nil if x is zero.
func unitVector(x []finite) []float32 {
	sum := 0.0
	for _, f := range x {
		sum += float64(f) * float64(f)
	}
	if sum == 0 {
		return nil
	}
	scale := 1 / math.Sqrt(sum)
	out := make([]float32, len(x))
	for i, f := range x {
		out[i] = float32(float64(f) * scale)
	}
	return out
}
