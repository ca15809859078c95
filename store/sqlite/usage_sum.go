package sqlite

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/store"
)

const (
	// maxSums and maxSumText bound what is told apart in one period: what comes
	// beyond them is of the bot "other".
	maxSums    = 4096
	maxSumText = 1 << 20
	// spareSums is how much of the bot "other" is told apart beyond maxSums: what
	// comes beyond that is of no protocol and endpoint.
	spareSums = 512
)

// sumKind is what is told apart in a period, in the order of [store.Usage].
type sumKind struct {
	bot, protocol, endpoint, outcome, verdict string
}

func (k sumKind) compare(l sumKind) int {
	return cmp.Or(strings.Compare(k.bot, l.bot), strings.Compare(k.protocol, l.protocol), strings.Compare(k.endpoint, l.endpoint),
		strings.Compare(k.outcome, l.outcome), strings.Compare(k.verdict, l.verdict))
}

// sumRow is what the events of one kind come to.
type sumRow struct {
	sumKind
	family string
	store.Counts
}

// add adds numbers that are not below 0, and stops at the greatest one.
func add(to *int64, n int64) {
	if *to += n; *to < 0 {
		*to = math.MaxInt64
	}
}

func addCounts(to *store.Counts, c *store.Counts) {
	for i, n := range countColumns(c) {
		add(countColumns(to)[i], *n)
	}
	took := int64(to.Took)
	add(&took, int64(c.Took))
	to.Took = time.Duration(took)
}

// counters is how many numbers there are in counts, but for the time.
const counters = 9

// countColumns are these numbers.
func countColumns(c *store.Counts) [counters]*int64 {
	return [counters]*int64{&c.Events, &c.Cached, &c.Results, &c.Bytes, &c.Size, &c.HTML, &c.Received, &c.Weighed, &c.Wired}
}

// sums are those of one period.
type sums struct {
	rows []sumRow
	at   map[sumKind]int // nil = not asked for yet
	text int             // bytes of texts, at most
}

// add adds to the row of a kind.
func (s *sums) add(r *sumRow) {
	if s.at == nil {
		s.at = make(map[sumKind]int, len(s.rows))
		for i := range s.rows {
			s.at[s.rows[i].sumKind] = i
			s.text += s.rows[i].size()
		}
	}
	row := *r
	i, ok := s.at[row.sumKind]
	if !ok && (len(s.rows) >= maxSums || s.text+row.size() > maxSumText) {
		row.bot, row.family, row.verdict = "other", "", ""
		i, ok = s.at[row.sumKind]
	}
	if !ok && (len(s.rows) >= maxSums+spareSums || s.text+row.size() > 2*maxSumText) {
		row.protocol, row.endpoint = "", ""
		i, ok = s.at[row.sumKind]
	}
	if !ok {
		s.at[row.sumKind] = len(s.rows)
		s.text += row.size()
		s.rows = append(s.rows, row)
		return
	}
	s.rows[i].family = row.family
	addCounts(&s.rows[i].Counts, &row.Counts)
}

func (r *sumRow) size() int {
	return len(r.bot) + len(r.family) + len(r.protocol) + len(r.endpoint) + len(r.outcome) + len(r.verdict)
}

// sort brings the rows into their order.
func (s *sums) sort() {
	slices.SortFunc(s.rows, func(a, b sumRow) int { return a.compare(b.sumKind) })
	s.at, s.text = nil, 0
}

// names are the texts of a row, in the order in which they are written.
func (r *sumRow) names() [6]*string {
	return [6]*string{&r.bot, &r.family, &r.protocol, &r.endpoint, &r.outcome, &r.verdict}
}

// encode gives what is kept of sums that are in their order.
func (s *sums) encode(c *coder) []byte {
	var w columnWriter
	var names index
	var rows columnWriter
	for n := range 6 {
		for i := range s.rows {
			rows.uint(uint64(names.of(*s.rows[i].names()[n])))
		}
	}
	w.uint(uint64(len(names.texts)))
	for _, s := range names.texts {
		w.text(s)
	}
	w.uint(uint64(len(s.rows)))
	w.b = append(w.b, rows.b...)
	for n := range counters {
		for i := range s.rows {
			w.uint(uint64(*countColumns(&s.rows[i].Counts)[n]))
		}
	}
	for i := range s.rows {
		w.uint(uint64(s.rows[i].Took / time.Microsecond))
	}
	return w.compress(c)
}

// decode is the inverse of encode. It gives no rows of nothing.
func (s *sums) decode(c *coder, data, buffer []byte) ([]byte, error) {
	s.rows, s.at, s.text = s.rows[:0], nil, 0
	if len(data) == 0 {
		return buffer, nil
	}
	r, err := c.expand(data, buffer)
	if err != nil {
		return buffer, err
	}
	buffer = r.b
	names := r.texts()
	n := r.length()
	if len(names) == 0 && n > 0 {
		return buffer, errDamaged
	}
	s.rows = slices.Grow(s.rows, n)[:n]
	for column := range 6 {
		for i := range s.rows {
			*s.rows[i].names()[column] = names[r.below(len(names))]
		}
	}
	for column := range counters {
		for i := range s.rows {
			*countColumns(&s.rows[i].Counts)[column] = int64(r.uint() & math.MaxInt64)
		}
	}
	for i := range s.rows {
		s.rows[i].Took = time.Duration(min(r.uint(), math.MaxInt64/1000)) * time.Microsecond
	}
	if err := r.done(); err != nil {
		s.rows = s.rows[:0]
		return buffer, err
	}
	return buffer, nil
}
