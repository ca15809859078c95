package accesslog

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

// beforeSize is the number of bytes before a position that are hashed to recognize a log. They
// contain several lines with timestamps.
const beforeSize = 1024

// before returns a hash of the bytes before an offset, or "" at the beginning or if the bytes are
// unreadable.
func before(f *os.File, offset int64) string {
	n := min(offset, beforeSize)
	b := make([]byte, n)
	if _, err := f.ReadAt(b, offset-n); err != nil || n == 0 {
		return ""
	}
	return canon.SHA256Hex(b)[:32]
}

// fits reports whether the bytes of a file before the position are those of the log.
func (p *position) fits(f *os.File) bool {
	return p.Offset == 0 || before(f, p.Offset) == p.Before
}

// renamedLog opens the file in the log's folder that contains the position, after the log was
// renamed or copied. It returns nil if no file does. It does not read compressed files.
func (f *Follower) renamedLog() *os.File {
	names, _ := filepath.Glob(filepath.Join(filepath.Dir(f.o.File), "*"))
	stem, _, _ := strings.Cut(filepath.Base(f.o.File), ".")
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(filepath.Base(name), stem) {
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		if f.at.fits(file) {
			return file
		}
		_ = file.Close() // opened only for reading
	}
	return nil
}

// endsLine reports whether the byte before an offset ends a line.
func endsLine(r io.ReaderAt, offset int64) bool {
	var b [1]byte
	_, err := r.ReadAt(b[:], offset-1)
	return err == nil && b[0] == '\n'
}

// recorded stores recorded events until their lines appear in the log.
type recorded struct {
	mu       sync.Mutex
	old, now map[recordedKey][]int64 // times in Unix ms
	n        int                     // events in now
}

type recordedKey struct {
	bot, path string
	status    int
	bytes     int64
}

const (
	maxRecorded = 8192
	// near is the maximum difference between the times of an event and of its line. The time of a
	// line is that of the end of the request, in whole seconds.
	near = 10 * time.Second
)

// add adds an event. It ignores a protocol's documents of single pages, which have their own URLs.
func (r *recorded) add(e *store.Event) {
	if e.Endpoint == store.EndpointFetch && e.Protocol != "web" && e.Protocol != "html" {
		return
	}
	key := recordedKey{e.Bot, e.Path, e.Status, e.Bytes}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil || r.n >= maxRecorded {
		r.old, r.now, r.n = r.now, make(map[recordedKey][]int64), 0
	}
	r.n++
	r.now[key] = append(r.now[key], e.Time.UnixMilli())
}

// take removes a recorded event, and reports whether there was one.
func (r *recorded) take(e *store.Event) bool {
	key := recordedKey{e.Bot, e.Path, e.Status, e.Bytes}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range []map[recordedKey][]int64{r.old, r.now} {
		times := m[key]
		for i, t := range times {
			if d := time.Duration(t-e.Time.UnixMilli()) * time.Millisecond; d.Abs() <= near {
				times[i] = times[len(times)-1]
				m[key] = times[:len(times)-1]
				return true
			}
		}
	}
	return false
}
