package dashboard

import "slices"

// diffLine is one line of a side-by-side comparison.
type diffLine struct {
	Text    string
	Other   bool // the other text lacks this line
	Omitted int  // number of equal lines that this entry replaces
}

const (
	// diffAround is the number of equal lines shown around different ones.
	diffAround = 3
	// diffWork is the maximum product of the numbers of lines in a comparison. Above it, all lines
	// between the common start and the common end count as different.
	diffWork = 4_000_000
)

// diff compares two texts line by line, and omits long runs of equal lines.
func diff(before, after []string) (was, is []diffLine) {
	inBefore, inAfter := common(before, after)
	return shortened(before, inBefore), shortened(after, inAfter)
}

// common reports which lines of two texts belong to a longest common subsequence.
func common(a, b []string) (inA, inB []bool) {
	inA, inB = make([]bool, len(a)), make([]bool, len(b))
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		inA[start], inB[start] = true, true
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
		inA[len(a)-end], inB[len(b)-end] = true, true
	}
	x, y := a[start:len(a)-end], b[start:len(b)-end]
	if len(x) == 0 || len(y) == 0 || len(x) > diffWork/len(y) {
		return inA, inB
	}
	// length[i*width+j] is the length of a longest common subsequence of x[i:] and y[j:].
	width := len(y) + 1
	length := make([]int32, (len(x)+1)*width)
	for i, line := range slices.Backward(x) {
		for j, other := range slices.Backward(y) {
			if line == other {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i] == y[j]:
			inA[start+i], inB[start+j] = true, true
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return inA, inB
}

// shortened omits equal lines, except those near different ones.
func shortened(lines []string, common []bool) (out []diffLine) {
	near := make([]bool, len(lines))
	for i := range lines {
		if !common[i] {
			for n := max(0, i-diffAround); n <= min(len(lines)-1, i+diffAround); n++ {
				near[n] = true
			}
		}
	}
	if !slices.Contains(near, true) {
		for n := range min(len(lines), 2*diffAround) {
			near[n] = true
		}
	}
	for i := 0; i < len(lines); i++ {
		n := 0
		for i+n < len(lines) && !near[i+n] {
			n++
		}
		if n > 1 {
			out = append(out, diffLine{Omitted: n})
			i += n - 1
			continue
		}
		out = append(out, diffLine{Text: sourceText([]byte(lines[i])), Other: !common[i]})
	}
	return out
}
