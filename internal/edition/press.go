package edition

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Room is a protocol that publishes, under its name.
type Room struct {
	Name      string // such as "tct-01"
	Publisher millrace.Publisher
	Guarded   bool // what it publishes needs a key, but for what is Public
}

// Options configure a [Press]. The zero value works.
type Options struct {
	// CacheBytes bounds the cache of page documents; 0 = 52 MB.
	CacheBytes int64
	// Key names whatever decides about large documents beside the store and
	// the names of the rooms, such as their options: a manifest that was made
	// under another key is not served. "" is a key like any other.
	Key string
	// Grace is how long the files of a superseded edition stay; 0 = an hour.
	Grace time.Duration
	// Signer signs responses that have a document's bytes, whole; nil = nobody
	// does.
	Signer Signer
	// Now tells the time; nil = the system's.
	Now func() time.Time
	// Log is told of publishing; nil = slog.Default().
	Log *slog.Logger
}

// Edition is what is published at one sequence number. It does not change.
type Edition struct {
	View    millrace.View
	Notices []millrace.Notice // one per room, in the order of the rooms

	number   uint64 // counts the editions of this process, from 1
	manifest *manifest
	made     [sha256.Size]byte // of the manifest: a sequence number may get another one in time
	large    map[key]*entry
	keyed    map[key]*entry // those of large that have another form for who has a key
	targets  targets
}

// Large lists the paths of the large documents, sorted.
func (ed *Edition) Large() []string { return ed.manifest.paths() }

// Files lists the paths of the files, in the order in which the rooms made them.
func (ed *Edition) Files() []string { return ed.manifest.shelfPaths() }

// Room gives the name of the room whose large document or file a path is, "" if
// it is none.
func (ed *Edition) Room(path string) string {
	for i := range ed.manifest.Documents {
		if d := &ed.manifest.Documents[i]; d.Path == path {
			return d.Room
		}
	}
	for i := range ed.manifest.Shelf {
		if f := &ed.manifest.Shelf[i]; f.Path == path {
			return f.Room
		}
	}
	return ""
}

// Press publishes a site in every room. All methods are safe for concurrent
// use.
type Press struct {
	site  store.Site
	rooms []Room
	dir   string
	key   string
	grace time.Duration
	sign  Signer
	now   func() time.Time
	log   *slog.Logger

	current atomic.Pointer[Edition]
	cache   *cache
	enc     encoders
	changed chan struct{}
	ready   chan struct{}
	moved   atomic.Pointer[chan struct{}] // closed with the next edition

	filing   atomic.Int64 // nanoseconds that the files of the last edition took
	building sync.Mutex   // held by whoever changes current; guards verified
	verified bool         // the files found at start have been read
}

// NewPress makes a press that keeps its files in dir, which it creates for its
// owner alone: what needs a key is among them. It serves nothing before [Press.Refresh] or [Press.Publish].
func NewPress(site store.Site, rooms []Room, dir string, o *Options) (*Press, error) {
	if o == nil {
		o = new(Options)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of large documents: %w", err)
	}
	p := &Press{
		site: site, rooms: rooms, dir: dir,
		key: o.Key, grace: cmp.Or(o.Grace, time.Hour), sign: o.Signer, now: o.Now, log: o.Log,
		cache: newCache(cmp.Or(o.CacheBytes, 52<<20)), changed: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	moved := make(chan struct{})
	p.moved.Store(&moved)
	if p.log == nil {
		p.log = slog.Default()
	}
	if p.now == nil {
		p.now = time.Now
	}
	for _, room := range rooms {
		p.key += "\n" + room.Name
	}
	return p, nil
}

// Rooms gives what publishes here, which the caller must not change.
func (p *Press) Rooms() []Room { return p.rooms }

// Current gives the newest edition, nil before the first.
func (p *Press) Current() *Edition { return p.current.Load() }

// Ready is closed when there is a first edition.
func (p *Press) Ready() <-chan struct{} { return p.ready }

// Moved is closed when there is another edition than the current one. Whoever
// waits asks for it before it looks at the current one.
func (p *Press) Moved() <-chan struct{} { return *p.moved.Load() }

// Refresh makes what the store says is published the current edition: at
// start, and when another process has published. Files that are missing here,
// or were made by another version, are built first. ErrNotFound: nothing is
// published.
func (p *Press) Refresh(ctx context.Context) error {
	p.building.Lock()
	defer p.building.Unlock()
	seq, prev, err := p.refresh(ctx)
	if errors.Is(err, millrace.ErrConflict) {
		return p.mend(ctx, seq, prev)
	}
	return err
}

// follow does what Refresh does while the process runs: it leaves an edition
// alone that another version has published, lest the two take turns. While it
// builds what is missing here, another edition may be published, after which it
// looks again at once: not often, since that takes the other as long.
func (p *Press) follow(ctx context.Context) error {
	p.building.Lock()
	defer p.building.Unlock()
	for range 3 {
		seq, prev, err := p.refresh(ctx)
		switch {
		case errors.Is(err, millrace.ErrConflict) && prev != nil && !prev.foreign:
			err = p.mend(ctx, seq, prev)
		case errors.Is(err, millrace.ErrConflict), errors.Is(err, millrace.ErrNotFound):
			return nil
		}
		if !errors.Is(err, millrace.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("published edition: %w: another process moves it again and again", millrace.ErrConflict)
}

// mend builds what is missing here of the published edition. The manifest
// stays the same unless another version made it.
func (p *Press) mend(ctx context.Context, seq uint64, prev *manifest) error {
	view, raw, err := p.site.Published(ctx)
	if err != nil {
		return fmt.Errorf("published edition: %w", err)
	}
	if view.Site().Seq != seq {
		return fmt.Errorf("published edition: %w: another process moves it", millrace.ErrConflict)
	}
	next, err := p.build(ctx, view, prev)
	if err != nil {
		return fmt.Errorf("published edition: %w", err)
	}
	same, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("published edition: %w", err)
	}
	if !bytes.Equal(same, raw) {
		if err := p.site.Publish(ctx, seq, seq, same); err != nil {
			return fmt.Errorf("published edition: %w", err)
		}
	}
	return p.put(view, next, same)
}

// refresh also gives the published sequence number and its manifest, as far as
// they can be had: with an ErrConflict, what can still be reused, or a foreign
// one.
func (p *Press) refresh(ctx context.Context) (uint64, *manifest, error) {
	view, raw, err := p.site.Published(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("published edition: %w", err)
	}
	seq := view.Site().Seq
	m, err := readManifest(raw, p.key)
	if err != nil {
		p.log.Info("published edition is not reusable", "seq", seq, "reason", err)
		return seq, m, fmt.Errorf("published edition: %w", errors.Join(millrace.ErrConflict, err))
	}
	ed := p.current.Load()
	if ed != nil && ed.manifest.Seq == seq && ed.made == sha256.Sum256(raw) {
		return seq, m, nil
	}
	if err := m.there(p.dir); err != nil {
		p.log.Warn("a published file is missing or damaged and will be built again", "seq", seq, "err", err)
		return seq, m, fmt.Errorf("published edition: %w: %w", millrace.ErrConflict, err)
	}
	return seq, m, p.put(view, m, raw)
}

// put makes an edition the current one; raw is its manifest in the store.
func (p *Press) put(view millrace.View, m *manifest, raw []byte) error {
	ed := &Edition{View: view, manifest: m, made: sha256.Sum256(raw), number: 1, large: make(map[key]*entry), keyed: make(map[key]*entry)}
	last := p.current.Load()
	if last != nil {
		ed.number = last.number + 1
	}
	for i := range m.Documents {
		d := &m.Documents[i]
		k, e, err := d.entry(p.dir, p.guarded(d.Room), time.Now())
		if err != nil {
			return err
		}
		ed.large[k] = e
		if d.Keyed == nil {
			continue
		}
		if _, ed.keyed[k], err = d.Keyed.entry(p.dir, true, time.Now()); err != nil {
			return err
		}
	}
	plain := m.plainSizes()
	for i := range m.Shelf {
		k, e, err := m.Shelf[i].entry(p.dir, p.guarded(m.Shelf[i].Room), plain[m.Shelf[i].ETag], time.Now())
		if err != nil {
			return err
		}
		ed.large[k] = e
	}
	for _, entries := range []map[key]*entry{ed.large, ed.keyed} {
		for _, e := range entries {
			e.signer = p.sign
		}
	}
	for _, room := range p.rooms {
		ed.Notices = append(ed.Notices, room.Publisher.Announce(view))
	}
	p.current.Store(ed)
	next := make(chan struct{})
	close(*p.moved.Swap(&next))
	if last == nil {
		close(p.ready)
	}
	return nil
}

// Publish makes the store's newest state the current edition, and reports
// whether that changed anything. ErrConflict: the pages have to be derived
// first, or another process published meanwhile; the latter's edition is then
// the current one.
func (p *Press) Publish(ctx context.Context) (bool, error) {
	p.building.Lock()
	defer p.building.Unlock()
	from, prev, err := p.refresh(ctx)
	whole := err == nil
	if err != nil && !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrConflict) {
		return false, fmt.Errorf("publishing: %w", err)
	}
	// Only now: a head from before could be older than what is published.
	head, err := p.site.Head(ctx)
	if err != nil {
		return false, fmt.Errorf("publishing: %w", err)
	}
	if prev != nil && !prev.foreign && !p.verified {
		whole = p.verify(prev) && whole
	}
	p.verified = true
	to := head.Site().Seq
	if whole && from == to && !prev.due(p.now()) {
		return false, nil
	}
	start := time.Now()
	next, err := p.build(ctx, head, prev)
	if err != nil {
		return false, fmt.Errorf("publishing: %w", err)
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return false, fmt.Errorf("publishing: %w", err)
	}
	if err := p.site.Publish(ctx, from, to, raw); err != nil {
		if errors.Is(err, millrace.ErrConflict) {
			if _, _, err := p.refresh(ctx); err != nil {
				p.log.Warn("the edition of another process is not usable here", "err", err)
			}
		}
		return false, fmt.Errorf("publishing %d over %d: %w", to, from, err)
	}
	if err := p.put(head, next, raw); err != nil {
		return false, fmt.Errorf("publishing: %w", err)
	}
	if err := p.collect(prev, time.Now()); err != nil {
		p.log.Warn("old files stay", "err", err)
	}
	p.log.Info("published", "seq", to, "pages", head.Site().Pages, "large", len(next.Documents), "took", time.Since(start).Round(time.Millisecond))
	return true, nil
}

// verify reads the files that an earlier process has left, and takes away
// what is damaged, so that it is built again.
func (p *Press) verify(m *manifest) bool {
	good := true
	for _, d := range m.Documents {
		if err := d.there(p.dir, true); err != nil {
			p.log.Warn("a published file is damaged and will be built again", "err", err)
			for _, f := range d.files() {
				_ = os.Remove(filepath.Join(p.dir, f.Name)) // build finds it missing
			}
			good = false
		}
	}
	for _, f := range m.Shelf {
		if err := f.there(p.dir, true); err != nil {
			p.log.Warn("a published file is damaged and will be made again", "err", err)
			_ = os.Remove(filepath.Join(p.dir, f.name()))
			good = false
		}
	}
	return good
}

// Forget lets go of what is kept to answer sooner, when hardly anybody is going
// to ask any more.
func (p *Press) Forget() { p.cache.clear() }

// Changed tells [Press.Run] that the store holds something new to publish. It
// never waits.
func (p *Press) Changed() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// How often Run does what.
const (
	restMin     = time.Second      // between the end of a build and the next
	restPerWork = 20               // and at least so many times as long as the documents of the last took
	restPerFile = 2                // and so many times as long as its files took: rooms make the large ones rarely enough
	lookEvery   = time.Second      // whether another process has published: as often as that may publish
	retryEvery  = 10 * time.Second // after an error, and at most
	retryMost   = 5 * time.Minute
)

// Run publishes whenever [Press.Changed] was called, at most every second and
// at most every twenty times as long as the documents of the last edition took,
// or twice as long as its files did, which know themselves when they are worth
// their cost; in between it
// follows what other processes publish, so that it is never more than one of
// their editions behind. It returns when the context ends.
func (p *Press) Run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	changed := p.changed // nil while it rests
	lost := false        // another process was first
	var rested <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if err := p.follow(ctx); err != nil && ctx.Err() == nil {
				p.log.Warn("looking for a new edition", "err", err)
			}
			if ed := p.current.Load(); ed != nil && ed.manifest.due(p.now()) {
				p.Changed()
			}
		case <-rested:
			changed = p.changed
		case <-changed:
			start := time.Now()
			p.filing.Store(0)
			_, err := p.Publish(ctx)
			files := time.Duration(p.filing.Load())
			rest := max(restMin, restPerWork*(time.Since(start)-files), restPerFile*files)
			if err != nil && ctx.Err() == nil {
				level := slog.LevelError
				if errors.Is(err, millrace.ErrConflict) && !lost {
					level = slog.LevelInfo // another process over the store was first, which may be
				}
				p.log.Log(ctx, level, "not published; it is tried again", "err", err)
				rest = max(retryEvery, min(rest, retryMost))
				p.Changed()
			}
			lost = errors.Is(err, millrace.ErrConflict)
			changed, rested = nil, time.After(rest)
		}
	}
}
