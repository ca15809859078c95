package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tree"
)

// format is the version of this package in the versions of pages. It must be increased when the
// same file may result in another page or another identity.
const format = 1

// noBase is the base of links if the folder's URL is unknown. Its name never resolves (RFC 6761,
// section 6.4).
const noBase = "http://folder.invalid/"

// Options are the options of [New]. The zero value is valid.
type Options struct {
	// Base is the absolute URL at which the folder is served. Links in pages are resolved against
	// it. If it is empty, links are resolved against the home according to the canonical links, or
	// otherwise against a host that does not exist.
	Base string
	// Rules correct the extraction of the pages. They may be nil.
	Rules  *extract.Rules
	Logger *slog.Logger // If nil, nothing is logged.
}

// Folder is a folder of static HTML. It is a [millrace.Source], and an [fs.FS] of its regular
// files. All methods are safe for concurrent use.
type Folder struct {
	dir   string // absolute
	base  string // canonical, ends with "/", or "" if unknown
	max   int64
	rules *extract.Rules
	log   *slog.Logger

	now  func() time.Time
	open func(file string) // called with the name of every page that is read; may be nil

	linked  atomic.Pointer[linked] // result of the last walk; nil before the first
	mu      sync.Mutex             // held by refresh
	present atomic.Pointer[snapshot]
}

// snapshot is one state of the folder: its open root and the data that was read from it. A snapshot
// never changes. If the folder is replaced, a new snapshot is created.
type snapshot struct {
	root  *os.Root
	info  fs.FileInfo // state of the folder itself
	home  string      // canonical, ends with "/", or "" if unknown
	base  string      // base of links
	rules string      // start of every version: fingerprint of all inputs except the file
	title string      // title of the site, or "" if unknown
	// probes are the files that determined home and title.
	probes []probe
}

// New opens a folder. If the folder does not exist, New returns [millrace.ErrNotFound]; if it is not
// readable, [millrace.ErrForbidden]. If dir is not a folder or contains no HTML page, or if the base
// is not an http(s) URL, New returns [millrace.ErrInvalid].
func New(dir string, o *Options) (*Folder, error) {
	if o == nil {
		o = &Options{}
	}
	f := &Folder{max: 50 << 20, rules: o.Rules, log: o.Logger, now: time.Now}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if o.Base != "" {
		if f.base, err = canon.URL(o.Base); err != nil {
			return nil, millrace.Coded("bad-base", fmt.Errorf("folder %s: base: %w: %w", dir, millrace.ErrInvalid, err))
		}
		f.base = asBase(f.base)
	}
	// Later changes of the working directory must not matter.
	if f.dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	t, err := f.refresh(context.Background())
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, tree.PathError(err))
	}
	w := f.walker(t.root)
	for e := range tree.Pages(w.Walk(context.Background(), ".")) {
		if !underscored(e.File) {
			return f, nil
		}
	}
	t.root.Close()
	if w.Failed != nil {
		return nil, fmt.Errorf("folder %s: no page is readable: %w", dir, w.Failed)
	}
	return nil, fmt.Errorf("folder %s: %w: no HTML page found (.html, .htm, .xhtml)", dir, millrace.Coded("no-page", millrace.ErrInvalid))
}

// Close closes the folder. No other method may be called afterwards.
func (f *Folder) Close() error { return f.present.Load().root.Close() }

// Changes walks the whole folder in the bytewise order of the URLs. It stores the entries of one
// directory and its parents at a time. For every page, it yields a Put without a page. Pages whose
// names start with an underscore come last; since contains the links to them that the previous walk
// found. The stream ends with one checkpoint, which is Complete unless a directory could not be
// read. If the name or the kind of a file shows that it is not a page, Changes yields a
// [*millrace.SkipError]. If the folder is missing, the error is [millrace.ErrUnavailable].
func (f *Folder) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		t, err := f.refresh(ctx)
		if err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("%w: %w", millrace.ErrUnavailable, err)
			}
			yield(millrace.Change{}, fmt.Errorf("folder %s: %w", f.dir, err))
			return
		}
		w := f.walker(t.root)
		put := func(e tree.Entry) bool {
			return yield(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: e.URL, Version: t.version(e.Info, f.now())}}, nil)
		}
		var private []tree.Entry
		var newest time.Time // time of the latest change to a page
		for e := range w.Walk(ctx, ".") {
			ok := true
			switch {
			case errors.Is(e.Err, errPrivate) && !f.hasPages(ctx, t, e.File):
				// a directory of styles, images or scripts, such as _static: no page is skipped
			case e.Err != nil:
				ok = yield(millrace.Change{}, &millrace.SkipError{URL: e.URL, Err: e.Err})
			case underscored(e.File):
				private = append(private, e)
			default:
				if at := tree.Changed(e.Info); at.After(newest) {
					newest = at
				}
				ok = put(e)
			}
			if !ok {
				return
			}
		}
		found, err := f.findLinks(ctx, t, private, since, newest)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			yield(millrace.Change{}, fmt.Errorf("folder %s: %w", f.dir, err))
			return
		}
		f.linked.Store(found)
		for _, e := range private {
			var ok bool
			if found.From[e.File] != "" {
				ok = put(e)
			} else {
				ok = yield(millrace.Change{}, &millrace.SkipError{URL: e.URL, Err: errPrivate, Absent: w.Failed == nil})
			}
			if !ok {
				return
			}
		}
		next := millrace.Cursor("walked") // every walk is complete, so it never resumes
		if w.Failed != nil {
			next = cmp.Or(since, next) // not all pages were searched
		} else if len(private) > 0 {
			next = found.cursor()
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: next, Complete: w.Failed == nil}}, nil)
	}
}

// refresh returns the current snapshot. If a deployment has replaced the folder with another one of
// the same name, refresh opens the new folder. The garbage collector closes the old one when it is
// no longer in use.
func (f *Folder) refresh(ctx context.Context) (*snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, tree.ErrNoFolder
	}
	next := new(snapshot)
	if t := f.present.Load(); t != nil && os.SameFile(t.info, info) {
		if t.unchanged() {
			return t, nil
		}
		next.root = t.root
	} else if next.root, err = os.OpenRoot(f.dir); err != nil {
		return nil, err
	}
	if next.info, err = next.root.Stat("."); err != nil {
		return nil, err
	}
	next.base = cmp.Or(f.base, noBase)
	if err := f.learn(ctx, next); err != nil {
		return nil, err
	}
	next.base = cmp.Or(f.base, next.home, noBase)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %q %q%s", format, extract.Version, next.home, next.base, f.rules.Fingerprint())
	next.rules = strconv.FormatUint(h.Sum64(), 36)
	f.present.Store(next)
	return next, nil
}

// SiteTitle returns the title of the site according to its first pages. It returns "" if the title
// is unknown.
func (f *Folder) SiteTitle(context.Context) (string, error) { return f.present.Load().title, nil }

// version returns the validator of a file. It returns "" if another change of the file might leave
// no trace.
func (t *snapshot) version(info fs.FileInfo, now time.Time) string {
	return tree.Version(t.rules, info, now)
}
