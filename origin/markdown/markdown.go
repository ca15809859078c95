package markdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tree"
	"github.com/millrace/millrace/internal/watch"
)

// format is the version of this package in the versions of pages. It must be increased when the
// same files may result in another page or another identity.
const format = 3

// noBase is the base of links if the site's URL is unknown. Its name never resolves (RFC 6761,
// section 6.4). Package folder uses the same base, so that the links of a site stay the same after
// it is built.
const noBase = "http://folder.invalid/"

// Options are the options of [New]. The zero value is valid.
type Options struct {
	// Kind is the convention that determines the pages. If it is empty, the convention is that of
	// the generator whose configuration file is in the folder or its parent, or otherwise [Plain].
	Kind Kind
	// Base is the absolute URL at which the site is served. Links are resolved against it. If it is
	// empty, they are resolved against the URL in the configuration, or otherwise against a host
	// that does not exist.
	Base string
	// MaxFile is the maximum size of a file in bytes. If it is zero, the maximum is 10 MB.
	MaxFile int64
	// Rules correct the extraction of HTML in Markdown. They may be nil. Only rules that drop
	// elements, or that keep parts of dropped elements, have an effect.
	Rules  *extract.Rules
	Logger *slog.Logger // If nil, nothing is logged.
}

// Folder is a folder of Markdown. It is a [millrace.Source]. All methods are safe for concurrent
// use.
type Folder struct {
	dir  string // absolute
	kind Kind   // Options.Kind
	base string // Options.Base; canonical, ends with "/", or "" if unknown
	max  int64
	log  *slog.Logger

	rules *extract.Rules
	now   func() time.Time
	open  func(file string) // called with the name of every page whose front matter is read; may be nil

	first   *snapshot  // snapshot created by New; its root is closed
	mu      sync.Mutex // held by refresh
	present atomic.Pointer[snapshot]
	lost    atomic.Int64 // number of values omitted since the last walk
}

// snapshot is one state of the folder: its open root, its configuration and its pages. It never
// changes.
type snapshot struct {
	*site
	root   *os.Root // folder of the project
	info   fs.FileInfo
	top    string   // absolute path of the project folder
	starts []string // folders to walk
	base   string   // base of links
	max    int64
	rules  *extract.Rules
	now    func() time.Time
	open   func(file string)
	index  *index
}

// New opens a folder. It reads the files later. If the folder does not exist, New returns
// [millrace.ErrNotFound]; if it is not readable, [millrace.ErrForbidden]. If dir is not a folder,
// contains no Markdown or has an invalid configuration, the kind is unknown, or the base is not an
// http(s) URL, New returns [millrace.ErrInvalid].
func New(dir string, o *Options) (*Folder, error) {
	if o == nil {
		o = &Options{}
	}
	f := &Folder{kind: o.Kind, max: cmp.Or(max(o.MaxFile, 0), 10<<20), log: o.Logger, rules: o.Rules, now: time.Now}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if o.Base != "" {
		if f.base, err = canon.URL(o.Base); err != nil {
			return nil, millrace.Coded("bad-base", fmt.Errorf("markdown %s: base: %w: %w", dir, millrace.ErrInvalid, err))
		}
		f.base = asFolder(f.base)
	}
	if f.dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("markdown %s: %w", dir, err)
	}
	s, err := f.openFolder()
	if err == nil {
		err = s.refusal()
	}
	if err != nil {
		return nil, fmt.Errorf("markdown %s: %w", dir, err)
	}
	w := s.walk(context.Background())
	for range tree.Pages(w.entries) {
		s.root.Close()
		f.first = s
		return f, nil
	}
	s.root.Close()
	if w.failed != nil {
		return nil, fmt.Errorf("markdown %s: no page is readable: %w", dir, w.failed)
	}
	return nil, fmt.Errorf("markdown %s: %w: no page found (.md, .markdown, .mdx)", dir, millrace.Coded("no-page", millrace.ErrInvalid))
}

// Kind returns the convention that determines the pages of the folder.
func (f *Folder) Kind() Kind { return f.newest().kind }

// Base returns the URL at which the site is served, according to the options or the configuration.
// It returns "" if the URL is unknown.
func (f *Folder) Base() string {
	if base := f.newest().base; base != noBase {
		return base
	}
	return ""
}

// SiteTitle returns the title of the site in the configuration, or "" if the configuration contains
// none.
func (f *Folder) SiteTitle(context.Context) (string, error) { return f.newest().title, nil }

// newest returns the latest snapshot.
func (f *Folder) newest() *snapshot {
	return cmp.Or(f.present.Load(), f.first)
}

// Close closes the folder. No other method may be called afterwards.
func (f *Folder) Close() error {
	if s := f.present.Load(); s != nil {
		return s.root.Close()
	}
	return nil
}

// Changes walks the whole folder. It ignores since. The pages are in the bytewise order of their
// names, which are the URLs in the stream. Changes stores about 16 bytes for each page. For every
// page, it yields a Put without a page. The stream ends with one checkpoint, which is Complete
// unless a directory could not be read. For a file that is not a page, Changes yields a
// [*millrace.SkipError], which is Absent if the front matter or the convention excludes the file.
// If the folder is missing, the error is [millrace.ErrUnavailable].
func (f *Folder) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		s, err := f.refresh(ctx)
		if err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("%w: %v", millrace.ErrUnavailable, err) //nolint:errorlint // one sentinel
			}
			yield(millrace.Change{}, fmt.Errorf("markdown %s: %w", f.dir, err))
			return
		}
		w := s.walk(ctx)
		for e := range w.entries {
			err := e.Err
			if err == nil {
				_, err = s.address(e)
			}
			var u unpublished
			if err != nil {
				if !yield(millrace.Change{}, &millrace.SkipError{URL: e.URL, Err: err, Absent: errors.As(err, &u)}) {
					return
				}
				continue
			}
			ref := millrace.Ref{URL: e.URL, Version: tree.Version(s.index.rules, e.Info, f.now())}
			if !yield(millrace.Change{Kind: millrace.Put, Ref: ref}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(millrace.Change{}, fmt.Errorf("markdown %s: %w", f.dir, err))
			return
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{
			Cursor:   "walked", // every walk is complete, so it never resumes
			Complete: w.failed == nil,
		}}, nil)
		if n := f.lost.Swap(0); n > 0 {
			f.log.Warn("omitted sentences with values that only the generator knows; publish the built site to include them", "count", n)
		}
	}
}

// Watch calls changed whenever something in the folder may have changed, like
// [github.com/millrace/millrace/origin/folder.Folder.Watch].
func (f *Folder) Watch(ctx context.Context, changed func()) error {
	s, err := f.state(ctx)
	if err != nil {
		return fmt.Errorf("markdown %s: %w", f.dir, err)
	}
	w := watch.Folder{
		Dir: s.top,
		Root: func(ctx context.Context) (*os.Root, fs.FileInfo, error) {
			s, err := f.refresh(ctx)
			if err != nil {
				return nil, nil, err
			}
			return s.root, s.info, nil
		},
		Walk: func(ctx context.Context, _ *os.Root, name string, add func(string) bool) {
			s, err := f.state(ctx)
			if err != nil || name == "." && !add(".") { // the configuration is in the project folder
				return
			}
			for _, start := range s.starts {
				switch {
				case name == "." || within(name, start):
					s.folders(ctx, start, add)
				case within(start, name):
					s.folders(ctx, name, add)
				}
			}
		},
		Sum:    watch.Sum(f),
		Logger: f.log,
	}
	return w.Watch(ctx, changed)
}

// state returns the current snapshot. The first call reads the folder.
func (f *Folder) state(ctx context.Context) (*snapshot, error) {
	if s := f.present.Load(); s != nil {
		return s, nil
	}
	return f.refresh(ctx)
}

// refresh reads the folder again. If another folder has replaced it, refresh opens the new folder.
// The garbage collector closes the old one when it is no longer in use.
func (f *Folder) refresh(ctx context.Context) (*snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := f.openFolder()
	if err != nil {
		return nil, err
	}
	old := f.present.Load()
	if old != nil && os.SameFile(old.info, next.info) {
		next.root.Close()
		next.root = old.root
	}
	if err := next.learn(ctx, old); err != nil {
		return nil, err
	}
	f.present.Store(next)
	return next, nil
}

// openFolder opens the folder and reads its configuration.
func (f *Folder) openFolder() (*snapshot, error) {
	info, err := os.Stat(f.dir)
	if err != nil {
		return nil, tree.PathError(err)
	}
	if !info.IsDir() {
		return nil, tree.PathError(tree.ErrNoFolder)
	}
	top, sub, site, _, err := detect(f.dir, f.kind)
	if err != nil {
		return nil, err
	}
	s := &snapshot{site: site, top: top, max: f.max, rules: f.rules, now: f.now, open: f.open}
	if s.root, err = os.OpenRoot(top); err != nil {
		return nil, tree.PathError(err)
	}
	if s.info, err = s.root.Stat("."); err != nil {
		s.root.Close()
		return nil, tree.PathError(err)
	}
	s.base = cmp.Or(f.base, site.base, noBase)
	s.starts = starts(site.roots(), sub)
	return s, nil
}
