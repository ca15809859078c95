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
	"github.com/millrace/millrace/internal/zdict"
)

// Options configure an [Index]. The zero value works.
type Options struct {
	Logger *slog.Logger // nil = discard
	// Embedder gives passages and questions their vectors. If nil, Fit learns
	// from the site's own words.
	Embedder Embedder

	fillBytes int // of words, gathered before they are written; 0 = 4 MB
}

// Index is the search index of one site. Its methods are safe for concurrent
// use.
type Index struct {
	path     string
	temp     string // a folder that Close removes; "" = none
	log      *slog.Logger
	embedder Embedder
	fill     int
	coder    zdict.Coder

	mu      sync.RWMutex // held for writing while the file is opened or closed
	db      *sql.DB      // nil = closed, or broken
	file    string       // made of the open file's state
	closed  bool
	writer  *conn
	writing chan struct{} // holds a token while writer is used
	idle    chan *conn    // that read
	opened  atomic.Int32  // of these, idle or not
	another atomic.Bool   // a search could not open it, or has opened another one
	broken  atomic.Bool   // the file was found damaged, or is not open
	used    atomic.Bool   // Search was called

	updating chan struct{} // holds a token during an update
	searches
}

// File returns the path of the index of a site: a file in the folder STORE.index.
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

// Open opens the index in a file, and makes the file and its folder if they are
// absent. It deletes a file of another format or a damaged one, and begins
// again. If the file cannot be written, Open logs that and makes the index in a
// temporary folder, which Close removes. ErrUnavailable: another process keeps
// the file locked, or the disk is full. nil options are the zero value.
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
			x.log.Info("index cannot be written; using a temporary folder", "path", path, "folder", x.temp)
			x.path = filepath.Join(x.temp, filepath.Base(path))
			err = x.open(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(explain("index "+path, err), os.RemoveAll(x.temp))
	}
	_ = x.touch() // Tidy of another process only deletes it after a week
	return x, nil
}

var errClosed = fmt.Errorf("%w: the index is not open", millrace.ErrUnavailable)

// Close waits for the searches under way and closes the file. Later searches
// fail with ErrUnavailable.
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

// The stages of an index. It answers from comparing on.
const (
	filling   = iota // a sweep takes in every page
	counting         // the terms are counted
	comparing        // a sweep looks for pages that differ
	following        // the log
)

// state is the only row of the table of that name.
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

// covers reports whether the index has come to a view, or beyond.
func (s *state) covers(v *millrace.Site) bool { return s.epoch == v.Epoch && uint64(s.seq) >= v.Seq }

// work is a write transaction.
type work struct {
	*conn
	state
	x *Index
}
