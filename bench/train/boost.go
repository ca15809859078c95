package main

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/millrace/millrace/internal/forest"
)

// samples contains the rows from which a forest learns, column by column.
type samples struct {
	x      [][]int16 // values of each feature
	y      []bool
	weight []float64
}

// settings contains the parameters of the training.
type settings struct {
	trees, leaves int
	rate          float64 // weight of one tree
	lambda        float64 // shrinks the values of small leaves
	minWeight     float64 // minimum weight of a leaf
}

const maxBins = 64

// column contains the values of a feature as bins. A bin is the index of the first limit that is
// not below the value.
type column struct {
	limits []int16
	bins   []uint8
}

func binned(x []int16) column {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	var c column
	distinct := slices.Compact(slices.Clone(sorted))
	if len(distinct) <= maxBins {
		c.limits = distinct
	} else {
		for i := 1; i <= maxBins; i++ {
			if v := sorted[i*len(sorted)/maxBins-1]; len(c.limits) == 0 || v > c.limits[len(c.limits)-1] {
				c.limits = append(c.limits, v)
			}
		}
	}
	c.bins = make([]uint8, len(x))
	for i, v := range x {
		k, _ := slices.BinarySearch(c.limits, v)
		c.bins[i] = uint8(min(k, len(c.limits)-1))
	}
	return c
}

// leaf is a leaf of a growing tree, with its best split.
type leaf struct {
	rows    []int32
	g, h    float64
	gain    float64
	feature int
	bin     int
	parent  int // index of its parent split; -1 = the root
	right   bool
}

// train grows gradient-boosted trees for the logistic loss. The same samples give the same
// trees.
func train(s *samples, o settings) (int32, []forest.Tree) {
	n := len(s.y)
	columns := make([]column, len(s.x))
	each(len(s.x), func(f int) { columns[f] = binned(s.x[f]) })
	var good, all float64
	for i, w := range s.weight {
		all += w
		if s.y[i] {
			good += w
		}
	}
	base := int32(math.Round(1000 * math.Log(good/(all-good))))
	score := make([]float64, n)
	for i := range score {
		score[i] = float64(base) / 1000
	}
	g, h := make([]float64, n), make([]float64, n)
	rows := make([]int32, 0, n)
	for i, w := range s.weight {
		if w > 0 {
			rows = append(rows, int32(i))
		}
	}
	var trees []forest.Tree
	for range o.trees {
		for _, i := range rows {
			p := 1 / (1 + math.Exp(-score[i]))
			y := 0.
			if s.y[i] {
				y = 1
			}
			g[i], h[i] = s.weight[i]*(y-p), s.weight[i]*p*(1-p)
		}
		t, leaves := grow(columns, slices.Clone(rows), g, h, o)
		if len(t.Splits) == 0 {
			break
		}
		for k, l := range leaves {
			for _, i := range l.rows {
				score[i] += float64(t.Leaves[k]) / 1000
			}
		}
		trees = append(trees, t)
	}
	return base, trees
}

// each calls f for 0 to n-1 on two cores.
func each(n int, f func(int)) {
	var wait sync.WaitGroup
	for k := range 2 {
		wait.Go(func() {
			for i := k; i < n; i += 2 {
				f(i)
			}
		})
	}
	wait.Wait()
}

// grow grows one tree. It makes the split with the highest gain first.
func grow(columns []column, rows []int32, g, h []float64, o settings) (forest.Tree, []*leaf) {
	root := &leaf{rows: rows, parent: -1}
	leaves := []*leaf{root}
	root.best(columns, g, h, o)
	var t forest.Tree
	for len(leaves) < o.leaves {
		at := 0
		for i, l := range leaves {
			if l.gain > leaves[at].gain {
				at = i
			}
		}
		l := leaves[at]
		if l.gain <= 0 {
			break
		}
		c := &columns[l.feature]
		left := &leaf{parent: len(t.Splits)}
		right := &leaf{parent: len(t.Splits), right: true}
		for _, i := range l.rows {
			if int(c.bins[i]) <= l.bin {
				left.rows = append(left.rows, i)
			} else {
				right.rows = append(right.rows, i)
			}
		}
		if l.parent >= 0 {
			if l.right {
				t.Splits[l.parent].Right = len(t.Splits)
			} else {
				t.Splits[l.parent].Left = len(t.Splits)
			}
		}
		t.Splits = append(t.Splits, forest.Split{Feature: uint8(l.feature), Limit: c.limits[l.bin]})
		leaves[at] = left
		leaves = append(leaves, right)
		left.best(columns, g, h, o)
		right.best(columns, g, h, o)
	}
	for k, l := range leaves {
		v := o.rate * l.g / (l.h + o.lambda)
		t.Leaves = append(t.Leaves, int32(math.Round(1000*max(min(v, 30), -30))))
		if l.parent >= 0 {
			if l.right {
				t.Splits[l.parent].Right = -1 - k
			} else {
				t.Splits[l.parent].Left = -1 - k
			}
		}
	}
	return t, leaves
}

// best finds the best split of a leaf.
func (l *leaf) best(columns []column, g, h []float64, o settings) {
	l.g, l.h = 0, 0
	for _, i := range l.rows {
		l.g += g[i]
		l.h += h[i]
	}
	type found struct {
		gain float64
		bin  int
	}
	by := make([]found, len(columns))
	score := func(g, h float64) float64 { return g * g / (h + o.lambda) }
	each(len(columns), func(f int) {
		c := &columns[f]
		var sum [maxBins][2]float64
		for _, i := range l.rows {
			b := &sum[c.bins[i]]
			b[0] += g[i]
			b[1] += h[i]
		}
		var lg, lh float64
		for b := range len(c.limits) - 1 {
			lg, lh = lg+sum[b][0], lh+sum[b][1]
			if lh < o.minWeight || l.h-lh < o.minWeight {
				continue
			}
			if gain := score(lg, lh) + score(l.g-lg, l.h-lh) - score(l.g, l.h); gain > by[f].gain+1e-12 {
				by[f] = found{gain, b}
			}
		}
	})
	l.gain = 0
	for f, b := range by {
		if cmp.Compare(b.gain, l.gain) > 0 {
			l.gain, l.feature, l.bin = b.gain, f, b.bin
		}
	}
}
