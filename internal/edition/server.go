package edition

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/store"
)

// Protocol is a protocol that publishes, under its name.
type Protocol struct {
	Name      string // such as "tct-01"
	Publisher millrace.Publisher
	Guarded   bool // what it publishes needs a key, but for what is Public
}

// Source is what a server publishes.
type Source struct {
	Store       store.Store // has the leases and manifests
	Site        store.Site  // whose log is followed
	Publication store.Publication
	// Reopen opens the publication again when the store has dropped it. May be nil.
	Reopen func(ctx context.Context) (store.Publication, error)
}

// Options configure a [Server]. The zero value works.
type Options struct {
	// CacheBytes bounds the cache of page documents; 0 = 52 MB.
	CacheBytes int64
	// Key names whatever decides about large documents beside the store and
	// the names of the protocols, such as their options: a manifest that was made
	// under another key is not served. "" is a key like any other.
	Key string
	// Version is that of the program, which decides about the bytes of documents as
	// well. At start, the documents of another version are built again. While it
	// runs, a process serves the editions that other versions publish.
	Version string
	// Grace is how long the artifacts of a superseded edition stay; 0 = 2 hours.
	Grace time.Duration
	// Progress receives the progress of bringing the publication up to the site,
	// in pages, and 0 of 0 when that has ended, also by an error. May be nil.
	Progress func(done, total int)
	// Busy reports whether the site is being read, at whose end [Server.Changed] is
	// called: until then, [Server.Run] does not begin with a part of the site. If
	// there is an edition, it does not wait. If nil, the site never is.
	Busy func() bool
	// Alone is locked while deferred work is done, so that other work that takes much
	// memory does not run beside it. If nil, nothing is locked.
	Alone sync.Locker
	// Search makes a view that can be searched of a published one; if nil, none can.
	Search func(millrace.View) millrace.View
	// Signer signs responses that have a document's bytes, whole; nil = nobody
	// does.
	Signer Signer
	// Now tells the time; nil = the system's.
	Now func() time.Time
	// Log is told of publishing; nil = slog.Default().
	Logger *slog.Logger
}

// Edition is what is published at one sequence number. It does not change.
type Edition struct {
	View           millrace.View
	Advertisements []millrace.Advertisement // one per protocol, in the order of the protocols

	number   uint64 // counts the editions of this process, from 1
	stored   uint64 // the edition's number in the store
	manifest *manifest
	rebuilt  bool // the store has another manifest
	large    map[key]*entry
	keyed    map[key]*entry // those of large that have another form for who has a key
	targets  targets
}

// Large lists the paths of the large documents, sorted.
func (ed *Edition) Large() []string { return ed.manifest.paths() }

// Files lists the paths of the files, in the order in which the protocols made them.
func (ed *Edition) ArtifactPaths() []string { return ed.manifest.artifactPaths() }

// Protocol gives the name of the protocol whose large document or file a path is, "" if
// it is none.
func (ed *Edition) Protocol(path string) string {
	for i := range ed.manifest.Documents {
		if d := &ed.manifest.Documents[i]; d.Path == path {
			return d.Protocol
		}
	}
	for i := range ed.manifest.Artifacts {
		if f := &ed.manifest.Artifacts[i]; f.Path == path {
			return f.Protocol
		}
	}
	return ""
}

// Server publishes a site in every protocol. All methods are safe for concurrent
// use.
type Server struct {
	from       Source
	protocols  []Protocol
	key        string
	version    string
	grace      time.Duration
	searchView func(millrace.View) millrace.View // as protocols get it
	signer     Signer
	now        func() time.Time
	log        *slog.Logger

	progress    func(done, total int)
	busy        func() bool
	alone       sync.Locker
	partEntries int // entries of the site's log

	publication atomic.Pointer[store.Publication]

	artifacts artifact.Store
	damaged   atomic.Bool // one of them could not be read

	current atomic.Pointer[Edition]
	cache   *cache
	enc     encoders
	changed chan struct{}
	ready   chan struct{}
	moved   atomic.Pointer[chan struct{}] // closed with the next edition

	deferredWork    chan struct{}             // for deferred work
	lastLag         atomic.Int64              // see Lag, in nanoseconds
	oldestChange    atomic.Pointer[time.Time] // since when a change is not visible; nil = none is known
	deferring       sync.Mutex                // guards done; held briefly
	done            done                      // deferred work that is not published yet
	building        sync.Mutex                // held while current changes; guards the fields below
	unconfirmed     bool                      // an artifact of current may be missing
	checkedAt       time.Time                 // when it was last checked that the store names current
	collectedAt     time.Time                 // when artifacts were last collected
	publishedCursor millrace.Cursor           // of the site, as far as current has it; "" = not known
}

// NewServer returns a server that keeps what it makes in artifacts, which the caller
// closes. Any number of publications of one store may share them. It serves nothing
// before [Server.Refresh] or [Server.Publish].
func NewServer(from Source, protocols []Protocol, artifacts artifact.Store, o *Options) *Server {
	if o == nil {
		o = new(Options)
	}
	s := &Server{
		artifacts: artifacts, from: from, protocols: protocols, progress: o.Progress, busy: o.Busy, alone: o.Alone, searchView: o.Search,
		partEntries: minPartEntries, key: o.Key, version: o.Version, grace: cmp.Or(o.Grace, grace), signer: o.Signer, now: o.Now, log: o.Logger, checkedAt: time.Now(),
		cache: newCache(cmp.Or(o.CacheBytes, 52<<20)), changed: make(chan struct{}, 1), deferredWork: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	s.publication.Store(&from.Publication)
	moved := make(chan struct{})
	s.moved.Store(&moved)
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.searchView == nil {
		s.searchView = func(v millrace.View) millrace.View { return v }
	}
	if s.now == nil {
		s.now = time.Now
	}
	for _, proto := range protocols {
		s.key += "\n" + proto.Name
	}
	return s
}

// Protocols gives what publishes here, which the caller must not change.
func (s *Server) Protocols() []Protocol { return s.protocols }

// Current gives the newest edition, nil before the first.
func (s *Server) Current() *Edition { return s.current.Load() }

// Published reports whether there is an edition.
func (s *Server) Published() bool { return s.Current() != nil }

// Ready is closed when there is a first edition.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Lag returns how long the oldest change of the last publication of this process
// took from its commit to being visible, 0 = there was no publication yet; and how
// long the oldest change that is not visible yet has waited, 0 = none waits.
func (s *Server) Lag() (last, waiting time.Duration) {
	if since := s.oldestChange.Load(); since != nil {
		waiting = max(s.now().Sub(*since), 0)
	}
	return time.Duration(s.lastLag.Load()), waiting
}

// Damaged returns the paths of the documents and files that answer 503 because an
// artifact of them is missing or damaged, until they are made again.
func (s *Server) Damaged() (paths []string) {
	if ed := s.current.Load(); ed != nil {
		for _, entries := range []map[key]*entry{ed.large, ed.keyed} {
			for k, e := range entries {
				if e.err() != nil {
					paths = append(paths, k.target())
				}
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Moved is closed when there is another edition than the current one. Whoever
// waits asks for it before it looks at the current one.
func (s *Server) Moved() <-chan struct{} { return *s.moved.Load() }

// put makes an edition the current one; stored is its number in the store, and
// mended says that its manifest is not the one in the store.
func (s *Server) put(view millrace.View, m *manifest, stored uint64, mended bool) error {
	view = s.searchView(view)
	ed := &Edition{View: view, manifest: m, stored: stored, rebuilt: mended, number: 1, large: make(map[key]*entry), keyed: make(map[key]*entry)}
	last := s.current.Load()
	if last == nil {
		last = new(Edition)
	}
	ed.number = last.number + 1
	m.index()
	for i := range m.Documents {
		d := &m.Documents[i]
		before := last.manifest.document(d.Path)
		if err := s.prepare(d, before, last.large, ed.large, s.guarded(d.Protocol)); err != nil {
			return err
		}
		if d.Keyed != nil {
			if before != nil {
				before = before.Keyed
			}
			if err := s.prepare(d.Keyed, before, last.keyed, ed.keyed, true); err != nil {
				return err
			}
		}
	}
	plain := m.plainSizes()
	for i := range m.Artifacts {
		k, e, err := m.Artifacts[i].entry(s, plain[m.Artifacts[i].ETag], time.Now())
		if err != nil {
			return err
		}
		ed.large[k] = e
	}
	for _, proto := range s.protocols {
		ed.Advertisements = append(ed.Advertisements, proto.Publisher.Advertise(view))
	}
	s.current.Store(ed)
	next := make(chan struct{})
	close(*s.moved.Swap(&next))
	if ed.number == 1 {
		close(s.ready)
	}
	return nil
}

// prepare adds the entry of a document to those of an edition. It is the last one if
// the document is the same, whose digests may be known.
func (s *Server) prepare(d, before *large, last, entries map[key]*entry, guarded bool) error {
	if before != nil && reflect.DeepEqual(d, before) {
		if k := keyAt(d.Path); last[k].err() == nil {
			entries[k] = last[k]
			return nil
		}
	}
	k, e, err := d.entry(s, guarded, time.Now())
	entries[k] = e
	return err
}

// Forget frees the response cache.
func (s *Server) DropCache() { s.cache.clear() }
