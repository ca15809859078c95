package accesslog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// FollowOptions configure a [Follower]. All fields are required unless stated otherwise.
type FollowOptions struct {
	File  string // path of the log
	Site  string // name of the site in the store
	Base  string // base URL of the site; lines for other hosts and for paths outside of it are skipped
	Bots  *bots.Table
	State store.State
	Usage store.Usage
	// Recorder stores the events. The caller runs it.
	Recorder *analytics.Recorder
	// Document reports whether millrace serves a document at a path, and returns the path of the
	// document's page, if it has one. The gateway records requests for such documents.
	Document func(ctx context.Context, path string) (page string, ok bool)

	Leases store.Leases  // If nil, no other process may use the store.
	Every  time.Duration // interval between two reads of the log. If zero, 1 s.
	Logger *slog.Logger  // If nil, nothing is logged.
}

// Follower reads an access log while a server writes it, and records the requests of bots.
//
// It begins at the end of the log. Later, it continues where it stopped, even in another process:
// the position in the store's state identifies the log by the bytes before the position. A log that
// was renamed or copied is therefore read to its end before its successor. Every line counts once,
// even if the process was killed.
//
// If the server passes requests on to millrace, the log also contains these requests. To count them
// only once, the gateway must record its events with [Follower.Record].
type Follower struct {
	o      FollowOptions
	host   string
	bots   Bots
	parser Parser
	seen   recorded

	file    *os.File // If nil, no file is open.
	at      position
	started bool // the position is loaded
	dirty   bool // some lines before the position may not be stored yet
	skip    bool // the rest of the current line must be skipped
	moved   bool // the path of the log named another file after the last read
	missing bool // the follower has logged that the log does not exist
	unknown int64
}

// position is a position in a log.
type position struct {
	Offset int64  `json:"offset"`
	Before string `json:"before"` // hash of the bytes before the position
	Event  uint64 `json:"event"`  // number of the last event in the store when the position was saved
	Known  bool   `json:"known"`  // false = there is no position yet
}

// NewFollower returns a follower of a log.
func NewFollower(o *FollowOptions) (*Follower, error) {
	f := &Follower{o: *o, bots: Bots{Table: o.Bots}}
	f.o.Every = cmp.Or(o.Every, time.Second)
	if f.o.Logger == nil {
		f.o.Logger = slog.New(slog.DiscardHandler)
	}
	u, err := url.Parse(o.Base)
	if err != nil {
		return nil, err
	}
	f.host = u.Hostname()
	if f.bots.Local, err = LocalAddresses(); err != nil {
		f.o.Logger.Warn("could not read addresses of this machine", "err", err)
	}
	// Report an unreadable log early. A log may be missing until the server starts.
	file, err := os.Open(o.File)
	if err == nil {
		info, serr := file.Stat()
		err = errors.Join(serr, file.Close())
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s: not a regular file", o.File)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return f, nil
}

// Record records an event of the gateway, and remembers it until its line appears in the log.
func (f *Follower) Record(e store.Event) {
	f.seen.add(&e)
	f.o.Recorder.Record(e)
}

// Run follows the log until the context ends. Only one process at a time reads it.
func (f *Follower) Run(ctx context.Context) {
	lease.Keep(ctx, f.o.Leases, "access log "+f.o.Site, f.o.Logger, func(ctx context.Context) {
		defer f.close()
		tick := time.NewTicker(f.o.Every)
		defer tick.Stop()
		failing := false
		err := f.start(ctx)
		for {
			if err == nil {
				err = f.readNew(ctx)
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil && !failing {
				f.o.Logger.Warn("could not follow access log; trying again", "path", f.o.File, "err", err)
			}
			failing = err != nil
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err = nil; !f.started {
				err = f.start(ctx)
			}
		}
	})
}

// start loads the position, and the events that were stored after it was saved. The lines of these
// events are read again, but not counted again.
func (f *Follower) start(ctx context.Context) (err error) {
	f.started, f.dirty = false, false
	if f.at, err = f.saved().Load(ctx); err != nil {
		return err
	}
	if f.at.Known {
		for e, err := range f.o.Usage.Events(ctx, f.o.Site, store.EventQuery{After: f.at.Event}) {
			if err != nil {
				return err
			}
			f.seen.add(&e)
		}
	}
	f.started = true
	return nil
}

func (f *Follower) saved() state.JSON[position] {
	return state.JSON[position]{State: f.o.State, Namespace: f.o.Site, Key: "access log " + f.o.File}
}

func (f *Follower) close() {
	if f.file != nil {
		_ = f.file.Close() // opened only for reading
	}
	f.file, f.skip, f.moved = nil, false, false
}

// readNew reads all new lines, and switches to the next file if the log was renamed.
func (f *Follower) readNew(ctx context.Context) error {
	if f.dirty {
		if err := f.save(ctx); err != nil {
			return err
		}
	}
	if f.file == nil {
		if err := f.open(ctx); err != nil || f.file == nil {
			return err
		}
	}
	if err := f.read(ctx); err != nil {
		f.close()
		return err
	}
	mine, err := f.file.Stat()
	if err != nil {
		f.close()
		return err
	}
	now, err := os.Stat(f.o.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the log was renamed, and the new file does not exist yet
	case err != nil:
		return err
	case os.SameFile(mine, now):
		f.moved = false
	case !f.moved:
		f.moved = true // the server may still write to the old file for a short time
	default:
		f.close()
		return f.begin(ctx, 0)
	}
	return nil
}

// open opens the file with the saved position, or else the log.
func (f *Follower) open(ctx context.Context) (err error) {
	file, err := os.Open(f.o.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !f.missing {
			f.o.Logger.Warn("access log does not exist; waiting for it", "path", f.o.File)
		}
		f.missing = true
		return nil
	case err != nil:
		return err
	}
	switch {
	case !f.at.Known && f.missing: // a new log
		f.file = file
		return f.begin(ctx, 0)
	case !f.at.Known:
		f.file = file
		size, err := file.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		f.skip = size > 0 && !endsLine(file, size)
		f.o.Logger.Info("following access log", "path", f.o.File)
		return f.begin(ctx, size)
	case f.at.fits(file):
		f.file = file
		return nil
	}
	_ = file.Close() // opened only for reading
	if f.file = f.renamedLog(); f.file != nil {
		return nil
	}
	f.o.Logger.Warn("access log was replaced, and the old log is not in the same folder; skipping requests at the end of the old log", "path", f.o.File)
	return f.begin(ctx, 0)
}

// begin saves a position in the log, and opens the log if necessary.
func (f *Follower) begin(ctx context.Context, offset int64) (err error) {
	if f.file == nil {
		if f.file, err = os.Open(f.o.File); err != nil {
			return err
		}
	}
	f.at.Offset, f.at.Before, f.dirty = offset, before(f.file, offset), true
	return f.save(ctx)
}

// save stores the events of all lines before the position, and then the position, even if the
// context ends meanwhile.
func (f *Follower) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	if err := f.o.Recorder.Flush(ctx); err != nil {
		return err
	}
	f.at.Known = true
	for e, err := range f.o.Usage.Events(ctx, f.o.Site, store.EventQuery{Newest: true, Limit: 1}) {
		if err != nil {
			return err
		}
		f.at.Event = e.Number
	}
	if err := f.saved().Save(ctx, f.at); err != nil {
		return err
	}
	f.dirty = false
	return nil
}

// saveTime is the time limit to store events and a position.
const saveTime = 10 * time.Second

// read reads the complete lines after the position.
func (f *Follower) read(ctx context.Context) error {
	if !f.at.fits(f.file) {
		f.o.Logger.Info("access log was truncated; reading it from its beginning", "path", f.o.File)
		f.skip = false
		if err := f.begin(ctx, 0); err != nil {
			return err
		}
	}
	block := make([]byte, blockSize)
	for ctx.Err() == nil {
		n, err := f.file.ReadAt(block, f.at.Offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		used := f.lines(ctx, block[:n])
		if used == 0 && n < maxLine {
			if n < len(block) {
				return nil
			}
			block = make([]byte, min(2*len(block), maxLine))
			continue
		}
		if used == 0 {
			used, f.skip = n, true
		}
		f.at.Offset += int64(used)
		f.at.Before, f.dirty = before(f.file, f.at.Offset), true
		if err := f.save(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// blockSize is the size of a block of lines in bytes. The recorder's buffer must hold the events
// of all lines of a block.
const blockSize = 256 << 10

// lines records the complete lines of a block, and returns their size.
func (f *Follower) lines(ctx context.Context, block []byte) (used int) {
	var l Line
	for {
		i := bytes.IndexByte(block[used:], '\n')
		if i < 0 {
			return used
		}
		line := block[used : used+i]
		used += i + 1
		switch {
		case f.skip:
			f.skip = false
		case len(line) == 0:
		case f.parser.Parse(line, &l):
			f.record(ctx, &l)
		default:
			if f.unknown++; f.unknown == 1 {
				f.o.Logger.Warn("skipping lines of the access log in an unknown format", "path", f.o.File)
			}
		}
	}
}

// record records a request by a bot, unless the gateway has recorded it.
func (f *Follower) record(ctx context.Context, l *Line) {
	bot := f.bots.Of(l.Agent)
	if bot == nil || l.Host != nil && !SameHost(l.Host, f.host) || f.bots.IsOwn(l) {
		return
	}
	e := f.bots.Event(l, bot)
	raw := e.Path
	if u, err := canon.URL(canon.Origin(f.o.Base) + raw); err == nil {
		e.Path = canon.Relative(strings.TrimSuffix(f.o.Base, "/"), u)
	}
	if !strings.HasPrefix(e.Path, "/") {
		if e.Protocol != access.SiteProtocol {
			return // outside the site
		}
		e.Path = raw
	}
	noted, document := e, false
	if e.Protocol != access.SiteProtocol {
		var page string
		page, document = f.o.Document(ctx, raw)
		noted.Path = cmp.Or(page, e.Path)
	}
	if f.seen.take(&noted) || document {
		return
	}
	f.o.Recorder.Record(e)
}
