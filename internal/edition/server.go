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

// Protocol is a protocol in which the server publishes.
type Protocol struct {
	Name      string // such as "tct-01"
	Publisher millrace.Publisher
	Guarded   bool // requests for its documents need a key, except for Public ones
}

// Source is the publication that a server publishes, with its site and store.
type Source struct {
	Store       store.Store // contains the leases and manifests
	Site        store.Site  // contains the log of changes
	Publication store.Publication
	// Reopen opens the publication again when the store has dropped it. May be nil.
	Reopen func(ctx context.Context) (store.Publication, error)
}

// Options configure a [Server]. The zero value works.
type Options struct {
	// CacheBytes is the limit of the response cache in bytes. If zero, 52 MiB.
	CacheBytes int64
	// Key identifies the configuration that determines the large documents, such as the options of
	// the protocols. The server does not serve a manifest that was built with another key. The
	// empty string is a valid key.
	Key string
	// Version is the version of the program. The builder rebuilds documents that another version
	// built. Until then, the server serves the editions that other versions publish.
	Version string
	// Progress is called with the progress of an update of the publication from the site, in pages,
	// and with zeros when the update ends or fails. May be nil.
	Progress func(done, total int)
	// SourceBusy reports whether a source is being read. During that time, [Server.Run] does not publish
	// the first edition. The caller must call [Server.Changed] when reading ends. If nil, the
	// server assumes false.
	SourceBusy func() bool
	// WorkLock is locked during deferred work, so that other work that needs much memory does not run
	// at the same time. May be nil.
	WorkLock sync.Locker
	// Search returns a searchable view for a published one. If nil, views cannot be
	// searched.
	Search func(millrace.View) millrace.View
	// Signer signs the 200 responses for documents and artifacts. If nil, they are not signed.
	Signer Signer
	// Now returns the time. If nil, time.Now.
	Now func() time.Time
	// Logger receives log messages about publishing. If nil, they are discarded.
	Logger *slog.Logger
}

// Edition is the state of a publication at one sequence number. It is immutable.
type Edition struct {
	View           millrace.View
	Advertisements []millrace.Advertisement // one for each protocol, in the same order

	number   uint64 // number of the edition in this process, from 1
	stored   uint64 // the edition's number in the store
	manifest *manifest
	rebuilt  bool // the manifest differs from the one in the store
	large    map[key]*entry
	keyed    map[key]*entry // the entries for requests with a key, where they differ from those in large
	targets  targets
}

// Large returns the sorted paths of the large documents.
func (ed *Edition) Large() []string { return ed.manifest.paths() }

// ArtifactPaths returns the paths of the artifacts, in the order in which the protocols added them.
func (ed *Edition) ArtifactPaths() []string { return ed.manifest.artifactPaths() }

// Protocol returns the name of the protocol that publishes the large document or
// artifact at a path. It returns "" for other paths.
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

// Server publishes a site in several protocols. All methods are safe for concurrent
// use.
type Server struct {
	from       Source
	protocols  []Protocol
	key        string
	version    string
	grace      time.Duration                     // the constant grace; tests change it
	searchView func(millrace.View) millrace.View // Options.Search, or the identity function
	signer     Signer
	now        func() time.Time
	log        *slog.Logger

	progress    func(done, total int)
	busy        func() bool
	alone       sync.Locker
	partEntries int // minimum number of changed pages in a partial edition

	publication atomic.Pointer[store.Publication]
	term        atomic.Pointer[context.Context]         // ends when this process loses the builder's lease. If nil, this process is not the builder.
	terms       atomic.Pointer[context.CancelCauseFunc] // ends the term, or the wait for one; see endTerm

	artifacts artifact.Store
	damaged   atomic.Bool // an artifact could not be read
	reading   sync.Map    // *bodies from which responses in progress read, by the *window of the response

	current      atomic.Pointer[Edition]
	cache        *cache
	enc          encoders
	dictionaries dictionaries
	changed      chan struct{}
	elected      chan struct{} // gets a value when this process becomes the builder
	ready        chan struct{}
	moved        atomic.Pointer[chan struct{}] // closed when the next edition exists

	deferredWork    chan struct{}             // gets a value when there may be deferred work
	lastLag         atomic.Int64              // last lag in nanoseconds; see Lag
	followed        atomic.Pointer[time.Time] // time of the last successful check for changes
	checksFail      bool                      // the last check failed; guarded by building
	oldestChange    atomic.Pointer[time.Time] // commit time of the oldest change that is not published. If nil, none is known.
	deferring       sync.Mutex                // guards done; held briefly
	done            done                      // deferred work that is not published yet
	building        sync.Mutex                // held while current changes; guards the fields below
	unconfirmed     bool                      // an artifact of current may be missing
	checkedAt       time.Time                 // time of the last check by keepArtifacts
	superseded      map[string]superseded     // artifacts that collect will delete, by name
	collectedAt     time.Time                 // time of the last collection of artifacts
	listedAt        time.Time                 // when all artifacts were last listed
	publishedCursor millrace.Cursor           // position in the site's log up to which current contains the changes, or "" if unknown
}

// NewServer returns a server that uses an artifact store, which the caller must close. All
// publications of one store may share an artifact store. The server has no edition until
// [Server.Refresh], [Server.Publish] or [Server.Run] creates one.
func NewServer(from Source, protocols []Protocol, artifacts artifact.Store, o *Options) *Server {
	if o == nil {
		o = new(Options)
	}
	s := &Server{
		artifacts: artifacts, from: from, protocols: protocols, progress: o.Progress, busy: o.SourceBusy, alone: o.WorkLock, searchView: o.Search,
		partEntries: minPartEntries, key: o.Key, version: o.Version, grace: grace, signer: o.Signer, now: o.Now, log: o.Logger, checkedAt: time.Now(), superseded: make(map[string]superseded),
		cache: newCache(cmp.Or(o.CacheBytes, 52<<20)), changed: make(chan struct{}, 1), elected: make(chan struct{}, 1), deferredWork: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	s.dictionaries.sent = make(chan *entry, maxSent)
	s.publication.Store(&from.Publication)
	moved := make(chan struct{})
	s.moved.Store(&moved)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
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

// Protocols returns the protocols of the server. The caller must not modify the slice.
func (s *Server) Protocols() []Protocol { return s.protocols }

// Current returns the newest edition, or nil before the first one.
func (s *Server) Current() *Edition { return s.current.Load() }

// Published reports whether there is an edition.
func (s *Server) Published() bool { return s.Current() != nil }

// Ready returns a channel that is closed when the first edition exists.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Lag returns two durations. last is the time from the commit of the oldest change in the last
// edition of this process to the publication of that edition, or 0 if this process has published
// nothing. waiting is the age of the oldest unpublished change, or 0 if none is known.
func (s *Server) Lag() (last, waiting time.Duration) {
	if since := s.oldestChange.Load(); since != nil {
		waiting = max(s.now().Sub(*since), 0)
	}
	return time.Duration(s.lastLag.Load()), waiting
}

// Damaged returns the sorted paths of documents and artifacts that are missing or damaged. The
// server responds with 503 for them until it has rebuilt them.
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

// NextEdition returns a channel that is closed when the next edition exists. Call it before
// [Server.Current], so that no edition is missed.
func (s *Server) NextEdition() <-chan struct{} { return *s.moved.Load() }

// put makes an edition the current one. stored is its number in the store. rebuilt reports that
// its manifest is not the one in the store.
func (s *Server) put(view millrace.View, m *manifest, stored uint64, rebuilt bool) error {
	view = s.searchView(view)
	ed := &Edition{View: view, manifest: m, stored: stored, rebuilt: rebuilt, number: 1, large: make(map[key]*entry), keyed: make(map[key]*entry)}
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
	plain := m.plainArtifacts()
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

// prepare adds the entry of a document to the entries of an edition. It reuses the last entry of an
// unchanged document, because that entry may have digests.
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

// DropCache frees the response cache.
func (s *Server) DropCache() { s.cache.clear() }
