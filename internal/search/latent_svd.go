package search

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/blas"
	kernels "gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/lapack"
	solvers "gonum.org/v1/gonum/lapack/gonum"
)

// decompose returns the k right singular vectors of a with the largest singular values, and these
// values. The vectors are the first k columns of the returned block, which has a row for each term.
// decompose may return fewer than k. It iterates on a random subspace (Halko, Martinsson and Tropp,
// "Finding structure with randomness", 2011, algorithm 4.4, on transposed(a)·a), which reads the
// matrix once per round.
func (a *matrix) decompose(ctx context.Context, k int) (*block, []float64, error) {
	width := min(k+oversampling, len(a.terms), len(a.rows))
	q, z := newBlock(len(a.terms), width), newBlock(len(a.terms), width)
	for r, h := range a.terms {
		// The random signs are the same in every run, because they depend on the term, not on its
		// column.
		row := q.row(r)
		for j := range row {
			row[j] = float32(1 - 2*int(spread(h+uint64(j))>>63))
		}
	}
	if err := q.orthonormalize(); err != nil {
		return nil, nil, err
	}
	for range rounds {
		if err := a.gram(ctx, q, z); err != nil {
			return nil, nil, err
		}
		q, z = z, q
		if err := q.orthonormalize(); err != nil {
			return nil, nil, err
		}
	}
	if err := a.gram(ctx, q, z); err != nil {
		return nil, nil, err
	}
	// These are the best vectors in this subspace (Rayleigh-Ritz method).
	values, vectors, err := eigen(q.inner(z), q.width)
	if err != nil {
		return nil, nil, err
	}
	var sigma []float64
	turn := make([]float32, q.width*q.width)
	for j := range min(k, q.width) {
		from := q.width - 1 - j // values are in ascending order
		if values[from] <= values[q.width-1]*1e-7 {
			break
		}
		sigma = append(sigma, math.Sqrt(values[from]))
		for i := range q.width {
			turn[i*q.width+j] = float32(vectors[i*q.width+from])
		}
	}
	if len(sigma) == 0 {
		return nil, nil, errors.New("the passages share no terms")
	}
	q.turn(turn)
	return q, sigma, nil
}

// gram sets z to transposed(a)·a·q.
func (a *matrix) gram(ctx context.Context, q, z *block) error {
	clear(z.data)
	y := make([]float32, q.width)
	var kernel kernels.Implementation
	for i := range a.rows {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r := &a.rows[i]
		p := &a.parts[r.part]
		clear(y)
		for e := r.from; e < r.till; e++ {
			c := int(p.column[e])
			kernel.Saxpy(q.width, a.local[p.counts[e]]*a.global[c]*r.norm, q.row(c), 1, y, 1)
		}
		for e := r.from; e < r.till; e++ {
			c := int(p.column[e])
			kernel.Saxpy(q.width, a.local[p.counts[e]]*a.global[c]*r.norm, y, 1, z.row(c), 1)
		}
	}
	return nil
}

// block is a tall matrix in row order.
type block struct {
	width int
	data  []float32
}

func newBlock(rows, width int) *block { return &block{width, make([]float32, rows*width)} }

func (b *block) row(r int) []float32 {
	return b.data[r*b.width : (r+1)*b.width : (r+1)*b.width]
}

// inner returns the upper triangle of transposed(b)·c, which is symmetric.
func (b *block) inner(c *block) []float64 {
	n := b.width
	sum := make([]float64, n*n)
	wide := make([]float64, n)
	var kernel kernels.Implementation
	for r := 0; r*n < len(b.data); r++ {
		for j, f := range c.row(r) {
			wide[j] = float64(f)
		}
		for i, f := range b.row(r) {
			kernel.Daxpy(n-i, float64(f), wide[i:], 1, sum[i*n+i:(i+1)*n], 1)
		}
	}
	return sum
}

// turn multiplies b by the square matrix m on the right.
func (b *block) turn(m []float32) {
	n := b.width
	old := make([]float32, n)
	var kernel kernels.Implementation
	for r := 0; r*n < len(b.data); r++ {
		row := b.row(r)
		copy(old, row)
		clear(row)
		for i, f := range old {
			kernel.Saxpy(n, f, m[i*n:(i+1)*n], 1, row, 1)
		}
	}
}

// orthonormalize makes the columns of b orthonormal in the same subspace. A column that is nearly
// a combination of others becomes zero. orthonormalize uses the eigenvectors of the inner products.
// It makes two passes, because one is inexact if columns are nearly parallel.
func (b *block) orthonormalize() error {
	n := b.width
	for range 2 {
		values, vectors, err := eigen(b.inner(b), n)
		if err != nil {
			return err
		}
		m := make([]float32, n*n)
		for j := range n {
			if values[j] <= values[n-1]*1e-12 {
				continue
			}
			scale := 1 / math.Sqrt(values[j])
			for i := range n {
				m[i*n+j] = float32(vectors[i*n+j] * scale)
			}
		}
		b.turn(m)
	}
	return nil
}

// eigen returns the eigenvalues of a symmetric matrix of n rows, ascending, and their eigenvectors
// as columns. It reads only the upper triangle of m, and overwrites m with the vectors.
//
// It calls the solver directly, because gonum's matrix package would add all solvers to the binary
// (ADR 40).
func eigen(m []float64, n int) (values, vectors []float64, err error) {
	var solver solvers.Implementation
	values = make([]float64, n)
	size := make([]float64, 1)
	solver.Dsyev(lapack.EVCompute, blas.Upper, n, m, n, values, size, -1) // only queries the size of the workspace
	if !solver.Dsyev(lapack.EVCompute, blas.Upper, n, m, n, values, make([]float64, int(size[0])), int(size[0])) {
		return nil, nil, errors.New("no eigenvectors found")
	}
	return values, m, nil
}
