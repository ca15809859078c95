package main

import (
	"context"
	"math"
	"strings"

	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/forest"
)

// row is a sample and its page.
type row struct {
	page   int
	x      []int16
	good   bool
	weight float64
}

// label collects the samples of a page. A text is good if at least half of its word sequences are in
// the gold text. In traf, a text is good if it contains a required snippet or is a long part of one.
func label(p *page, at int) ([]row, error) {
	var rows []row
	var gold [5]map[string]int // word sequences of the gold text, by their length
	all := 0
	if p.set != "traf" {
		lower := strings.ToLower(p.Text)
		all = len(wordPattern.FindAllString(lower, -1))
		for n := 1; n < len(gold); n++ {
			gold[n] = shingles(lower, n)
		}
	}
	with, without := folded(p.With), folded(p.Without)
	seen := func(text string, x []int16, _ bool) {
		r := row{page: at, x: append([]int16(nil), x...)}
		lower := strings.ToLower(text)
		words := wordPattern.FindAllString(lower, -1)
		if len(words) == 0 {
			return
		}
		if p.set == "traf" {
			line := oneLine(text)
			for _, s := range without {
				if strings.Contains(line, s) {
					r.weight = trafWeight
				}
			}
			for _, s := range with {
				if strings.Contains(line, s) || len(words) > 5 && strings.Contains(s, line) {
					r.weight, r.good = trafWeight, true
				}
			}
			if r.weight == 0 {
				return
			}
		} else {
			n := min(len(words), 4)
			hit := 0
			for i := 0; i+n <= len(words); i++ {
				if gold[n][strings.Join(words[i:i+n], " ")] > 0 {
					hit++
				}
			}
			r.good = hit*2 >= len(words)-n+1
			r.weight = math.Pow(float64(len(words)), wordPower) / math.Pow(float64(max(all, 100)), wordPower) * setWeight[p.set]
		}
		rows = append(rows, r)
	}
	_, err := extract.HTML(forest.WithProbe(context.Background(), &forest.Probe{Seen: seen}), p.html, p.URL, nil)
	return rows, err
}

// trafWeight is the weight of a text in traf with a snippet. In other sets, the weight is the ratio
// of the text's words to the gold text's words, raised to wordPower and multiplied by setWeight, so
// that long pages do not outweigh others.
const (
	trafWeight = .05
	wordPower  = .8
)

var setWeight = map[string]float64{"wcxb": 1, "aeb": 2}

func folded(list []string) (out []string) {
	for _, s := range list {
		out = append(out, oneLine(s))
	}
	return out
}

// columns returns the samples of the rows for which use is true.
func columns(rows []row, use func(*row) bool) *samples {
	s := &samples{}
	for i := range rows {
		r := &rows[i]
		if !use(r) {
			continue
		}
		if s.x == nil {
			s.x = make([][]int16, len(r.x))
		}
		for f, v := range r.x {
			s.x[f] = append(s.x[f], v)
		}
		s.y, s.weight = append(s.y, r.good), append(s.weight, r.weight)
	}
	return s
}
