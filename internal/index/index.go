package index

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sqlitefile"
	"github.com/millrace/millrace/internal/zdict"
)

// Options configure an [Index]. The zero value works.
type Options struct {
	Logger *slog.Logger // If nil, nothing is logged.
	// Embedder computes vectors of passages and questions. If nil, Fit learns from the
	// words of the site.
	Embedder Embedder

	fillBytes int // bytes of words that are held in memory before they are written. If zero, 4 MB.
}

// Index is the search index of one site. It is safe for concurrent use.
type Index struct {
	path     string
	temp     string // folder that Close removes, or ""
	log      *slog.Logger
	embedder Embedder
	fill     int
	coder    zdict.Coder

	mu      sync.RWMutex // held for writing while the file is opened or closed
	db      *sql.DB      // If nil, the index is closed or broken.
	file    string       // random identifier stored in the open file
	is      sqlitefile.Identity
	closed  bool
	writer  *conn
	writing chan struct{} // contains a value while writer is in use
	idle    chan *conn    // unused connections for reading
	opened  atomic.Int32  // number of open connections for reading
	another atomic.Bool   // a search found that the file was deleted or replaced
	broken  atomic.Bool   // the file is damaged or not open
	used    atomic.Bool   // Search was called

	updating chan struct{} // contains a value during an update
	searches
}

// File returns the path of a site's index: a file in the folder STORE.index.
func File(store, site string) string {
	sum := sha256.Sum256([]byte(site))
	_, name, _ := strings.Cut(site, "://")
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(cmp.Or(name, filepath.Base(site))))
	return filepath.Join(store+".index", strings.Trim(name[:min(len(name), 40)], "-.")+"-"+hex.EncodeToString(sum[:6])+".db")
}

// Open opens the index in a file. It creates the file and its folder if they are absent, and
// replaces a file that is damaged or has another format. If the file is not writable, Open
// creates the index in a temporary folder instead, which Close removes. If another process keeps
// the file locked, or the disk is full, Open returns ErrUnavailable. If o is nil, Open uses the
// zero value.
func Open(ctx context.Context, path string, o *Options) (*Index, error) {
	if o == nil {
		o = new(Options)
	}
	x := &Index{
		path: path, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), embedder: o.Embedder, fill: cmp.Or(o.fillBytes, 4<<20), coder: zdict.Coder{Series: "texts"},
		writing: make(chan struct{}, 1), idle: make(chan *conn, min(runtime.NumCPU(), 4)), updating: make(chan struct{}, 1),
	}
	err := x.open(ctx)
	if readOnly(err) {
		if x.temp, err = os.MkdirTemp("", "millrace-index-"); err == nil {
			x.log.Info("index cannot be written; using a temporary folder", "path", path, "temporary", x.temp)
			x.path = filepath.Join(x.temp, filepath.Base(path))
			err = x.open(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(explain("index "+path, err), os.RemoveAll(x.temp))
	}
	_ = x.touch() // prevents Tidy of another process from deleting the index
	return x, nil
}

var errClosed = fmt.Errorf("%w: the index is not open", millrace.ErrUnavailable)

// Close waits for running searches and closes the file. Later searches return
// ErrUnavailable.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	var err error
	if x.db != nil {
		err = x.disconnect()
	}
	if err := errors.Join(err, os.RemoveAll(x.temp)); err != nil {
		return explain("close index "+x.path, err)
	}
	return nil
}

// View returns a view that is also a [millrace.Searcher].
func (x *Index) View(v millrace.View) millrace.View { return searchable{v, x} }

type searchable struct {
	millrace.View
	index *Index
}

// Search implements [millrace.Searcher].
func (s searchable) Search(ctx context.Context, q millrace.Query) (*millrace.Found, error) {
	return s.index.Search(ctx, s.View, q)
}

// Stages of an index. Searches are possible in the stages comparing and following.
const (
	filling   = iota // Update reads all pages
	counting         // Update counts the terms
	comparing        // Update reads the pages that differ
	following        // Update follows the log
)

// state is the row of the table state.
type state struct {
	made                                 string
	turn                                 int64
	stage                                int
	epoch                                string
	seq, time                            int64
	after                                string
	done                                 int
	next, passages, length, model, moved int64
}

func (c *conn) state() (s state, err error) {
	err = c.row("SELECT made, turn, stage, epoch, seq, time, after, done, next, passages, length, model, moved FROM state", nil,
		&s.made, &s.turn, &s.stage, &s.epoch, &s.seq, &s.time, &s.after, &s.done, &s.next, &s.passages, &s.length, &s.model, &s.moved)
	return s, err
}

// covers reports whether the index is at least as new as a view.
func (s *state) covers(v *millrace.Site) bool { return s.epoch == v.Epoch && uint64(s.seq) >= v.Seq }

// work is a write transaction.
type work struct {
	*conn
	state
	x       *Index
	encoder *zdict.Encoder
}
