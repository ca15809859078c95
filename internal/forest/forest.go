// Package forest evaluates small ensembles of decision trees. A forest is a table of bytes that a
// training program writes. Scores are computed only with integers, so a forest returns the same
// scores on every machine.
package forest

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
)

// Forest is an ensemble of decision trees. It is immutable and safe for concurrent use.
type Forest struct {
	splits []split
	leaves []int32
	roots  []int32 // index of the first split of each tree
	base   int32
}

// split is an inner node. A sample whose feature is at most the limit goes to the left child.
// Children are indexes of splits, or of leaves as -1-index.
type split struct {
	feature     uint8
	limit       int16
	left, right int32
	value       int32 // mean of the values of the two children
}

// Tree is one tree in the form that a training program builds. A child of at least 0 is an index of
// Splits; a negative child is a leaf, as -1-index. The first split is the root.
type Tree struct {
	Splits []Split
	Leaves []int32 // values of the leaves in thousandths of a logit
}

// Split is an inner node of a Tree.
type Split struct {
	Feature     uint8
	Limit       int16
	Left, Right int
}

var errTable = errors.New("invalid table of a forest")

// Encode returns the table of trees. The score of a sample is base plus the values of its leaves.
func Encode(base int32, trees []Tree) string {
	b := binary.BigEndian.AppendUint16(nil, uint16(int16(base)))
	for _, t := range trees {
		b = append(b, byte(len(t.Splits)))
		child := func(i int) byte {
			if i < 0 {
				return byte(0x80 | (-1 - i))
			}
			return byte(i)
		}
		for _, s := range t.Splits {
			b = append(b, s.Feature)
			b = binary.BigEndian.AppendUint16(b, uint16(s.Limit))
			b = append(b, child(s.Left), child(s.Right))
		}
		for _, v := range t.Leaves {
			b = binary.BigEndian.AppendUint16(b, uint16(int16(v)))
		}
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

// Parse parses a table written by [Encode], for samples with the given number of features.
func Parse(table string, features int) (*Forest, error) {
	b, err := base64.RawStdEncoding.DecodeString(table)
	if err != nil || len(b) < 2 {
		return nil, fmt.Errorf("%w: it is not base64", errTable)
	}
	f := &Forest{base: int32(int16(binary.BigEndian.Uint16(b)))}
	for b = b[2:]; len(b) > 0; {
		n := int(b[0])
		b = b[1:]
		if n == 0 || n > 127 || len(b) < 5*n+2*(n+1) {
			return nil, fmt.Errorf("%w: a tree with %d splits and %d bytes left", errTable, n, len(b))
		}
		first, leaf := int32(len(f.splits)), int32(len(f.leaves))
		f.roots = append(f.roots, first)
		for i := range n {
			s := split{feature: b[0], limit: int16(binary.BigEndian.Uint16(b[1:]))}
			for k, side := range []*int32{&s.left, &s.right} {
				c := int32(b[3+k])
				switch {
				case c&0x80 != 0 && c&0x7F <= int32(n):
					*side = -1 - leaf - c&0x7F
				case c&0x80 == 0 && c > int32(i) && c < int32(n):
					*side = first + c
				default:
					return nil, fmt.Errorf("%w: split %d refers to child %d, but the tree has %d splits", errTable, i, c, n)
				}
			}
			if int(s.feature) >= features {
				return nil, fmt.Errorf("%w: split %d tests feature %d, but samples have %d features", errTable, i, s.feature, features)
			}
			f.splits, b = append(f.splits, s), b[5:]
		}
		for range n + 1 {
			f.leaves, b = append(f.leaves, int32(int16(binary.BigEndian.Uint16(b)))), b[2:]
		}
	}
	for i := len(f.splits) - 1; i >= 0; i-- { // children come after their split
		s := &f.splits[i]
		s.value = (f.at(s.left) + f.at(s.right)) / 2
	}
	return f, nil
}

// at returns the value of a child.
func (f *Forest) at(child int32) int32 {
	if child < 0 {
		return f.leaves[-1-child]
	}
	return f.splits[child].value
}

// Score returns the score of a sample in thousandths of a logit: above 0 if the class is more
// likely than not.
func (f *Forest) Score(x []int16) int32 {
	sum := f.base
	for _, at := range f.roots {
		for at >= 0 {
			if s := &f.splits[at]; x[s.feature] <= s.limit {
				at = s.left
			} else {
				at = s.right
			}
		}
		sum += f.leaves[-1-at]
	}
	return sum
}

// Explain returns the contribution of each feature to the score of a sample: the sum of the changes
// of the mean value along the paths of all trees.
func (f *Forest) Explain(x []int16) []int32 {
	by := make([]int32, len(x))
	for _, at := range f.roots {
		for at >= 0 {
			s := &f.splits[at]
			next := s.right
			if x[s.feature] <= s.limit {
				next = s.left
			}
			by[s.feature] += f.at(next) - s.value
			at = next
		}
	}
	return by
}

// Probe replaces the forest of one extraction and observes its samples. A training program
// uses it.
type Probe struct {
	Forest *Forest // if nil, the extraction uses no forest
	// Seen receives each sample: the text, its features, and whether the text was content before the
	// forest corrected the result. It must not retain the features.
	Seen func(text string, x []int16, kept bool)
}

type probeKey struct{}

// WithProbe returns a context with a probe.
func WithProbe(ctx context.Context, p *Probe) context.Context {
	return context.WithValue(ctx, probeKey{}, p)
}

// ProbeOf returns the probe of a context, or nil.
func ProbeOf(ctx context.Context) *Probe {
	p, _ := ctx.Value(probeKey{}).(*Probe)
	return p
}
