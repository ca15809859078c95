package crawl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
)

// task is one address to fetch.
type task struct {
	url   string
	from  string // URL of a page with a link to the address. If empty, the address came from a list, or the page is unknown.
	depth int    // number of links from the root or from a list
	hint  int64  // modification time in the lists, in seconds since 1970, or 0 if unknown; see start
	list  int    // number of the list in this run that contains the address, starting with 1, or 0
	// listed reports whether a list has named the address in this run or an earlier one.
	listed bool

	full         bool   // fetch without conditions
	hinted       bool   // fetched early, because a list reports a change
	knownVersion string // version that the sink has stored
	version      version
	reextracted  bool // whether the page was extracted again in this run; the sink may still return the previous version
	state        state
}

// queue is the FIFO queue of addresses to fetch. If it has more than two blocks, the others are in
// a temporary file.
type queue struct {
	head, tail []task // head is read, and tail is written
	next       int    // index of the next task in head
	file       *os.File
	in, out    int64 // numbers of bytes written to and read from the file
	blocks     []int64
	n          int
}

// block is the number of tasks written to the file at once.
const block = 4096

// push adds a task without its stored version, because queued addresses do not have one. If the
// temporary file cannot be written, push returns ErrUnavailable.
func (q *queue) push(t task) error {
	q.n++
	q.tail = append(q.tail, t)
	switch {
	case len(q.tail) < block:
		return nil
	case len(q.blocks) == 0 && q.next == len(q.head):
		q.head, q.tail, q.next = q.tail, q.head[:0], 0
		return nil
	}
	return q.spill()
}

// pop removes and returns the oldest task.
func (q *queue) pop() (task, bool, error) {
	if q.next == len(q.head) {
		clear(q.head)
		q.head, q.next = q.head[:0], 0
		if len(q.blocks) > 0 {
			if err := q.load(); err != nil {
				return task{}, false, err
			}
		} else {
			q.head, q.tail = q.tail, q.head
		}
		if len(q.head) == 0 {
			return task{}, false, nil
		}
	}
	t := q.head[q.next]
	q.head[q.next] = task{}
	q.next++
	q.n--
	return t, true, nil
}

// spill moves the tail to the file.
func (q *queue) spill() error {
	if q.file == nil {
		f, err := os.CreateTemp("", "millrace-crawl-*")
		if err != nil {
			return fmt.Errorf("queue of addresses: %w: %w", millrace.ErrUnavailable, err)
		}
		_ = os.Remove(f.Name()) // an unlinked file does not outlive a killed process
		q.file = f
	}
	w := &strings.Builder{}
	from := ""
	for _, t := range q.tail {
		// Canonical URLs contain neither white space nor control characters.
		w.WriteString(t.url)
		w.WriteByte('\t')
		if t.from != from {
			from = t.from
			w.WriteString(from)
		} else {
			w.WriteByte('=')
		}
		for _, n := range []int64{int64(t.depth), int64(t.list), int64(t.state), flag(t.listed)} {
			w.WriteByte('\t')
			w.WriteString(strconv.FormatInt(n, 36))
		}
		w.WriteByte('\n')
	}
	n, err := q.file.WriteAt([]byte(w.String()), q.in)
	if err != nil {
		return fmt.Errorf("queue of addresses: %w: %w", millrace.ErrUnavailable, err)
	}
	q.in += int64(n)
	q.blocks = append(q.blocks, int64(n))
	clear(q.tail)
	q.tail = q.tail[:0]
	return nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// load reads the oldest block of the file into the head.
func (q *queue) load() error {
	size := q.blocks[0]
	r := bufio.NewReaderSize(io.NewSectionReader(q.file, q.out, size), 64<<10)
	from := ""
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			break
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if err != nil || len(f) != 6 {
			return fmt.Errorf("queue of addresses: %w: the temporary file is broken", millrace.ErrUnavailable)
		}
		if f[1] != "=" {
			from = strings.Clone(f[1])
		}
		var n [4]int64
		for i := range n {
			n[i], _ = strconv.ParseInt(f[2+i], 36, 64)
		}
		q.head = append(q.head, task{url: strings.Clone(f[0]), from: from, depth: int(n[0]), list: int(n[1]), state: state(n[2]), listed: n[3] != 0})
	}
	q.out += size
	if q.blocks = q.blocks[1:]; len(q.blocks) == 0 {
		q.in, q.out, q.blocks = 0, 0, nil // the file is reused from its start
	}
	return nil
}

// close removes the file.
func (q *queue) close() {
	if q.file != nil {
		_ = q.file.Close()
		_ = os.Remove(q.file.Name())
	}
}
