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

	"github.com/fsnotify/fsnotify"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
)

// format is the version of this package's own part in a page. It rises
// whenever the same file may give another page or another identity.
const format = 1

// noBase is what links are resolved against when nobody knows where the
// folder is deployed. The name never resolves (RFC 6761, section 6.4).
const noBase = "http://folder.invalid/"

// Options of [New]. The zero value works.
type Options struct {
	// Base is the absolute URL at which the folder is served: links inside
	// pages are resolved against it. "" = the home that canonical links tell
	// of, else a host that does not exist.
	Base string
	// MaxFile is the most bytes that a page may have; 0 = 50 MB.
	MaxFile int64
	Logger  *slog.Logger // nil = discard
}

// Folder is a folder of static HTML. It is a [millrace.Source] and an [fs.FS]
// of its regular files; all methods are safe for concurrent use.
type Folder struct {
	dir  string // absolute
	base string // canonical, ends with "/"; "" = unknown
	max  int64
	log  *slog.Logger

	now     func() time.Time
	open    func(file string) // told of every page that is read; nil = nobody
	watcher func() (*fsnotify.Watcher, error)

	mu   sync.Mutex // of refresh
	tree atomic.Pointer[tree]
}

// tree is one state of the folder: what is open, and what was learned of it.
// It never changes; a folder that is replaced gets a new one.
type tree struct {
	root  *os.Root
	info  fs.FileInfo // of the folder itself
	home  string      // canonical, ends with "/"; "" = unknown
	base  string      // what links are resolved against
	rules string      // start of every version: fingerprint of what decides beside the file
	// probes are the files that home was learned from.
	probes []probe
}

var errNoFolder = errors.New("it is not a folder")

// New opens a folder. Errors: [millrace.ErrNotFound] for a folder that does
// not exist, [millrace.ErrForbidden] for one that may not be read, and
// [millrace.ErrInvalid] for what is no folder, has no HTML page in it, or for a
// base that is no http(s) URL.
func New(dir string, o *Options) (*Folder, error) {
	if o == nil {
		o = &Options{}
	}
	f := &Folder{max: o.MaxFile, log: o.Logger, now: time.Now, watcher: fsnotify.NewWatcher}
	if f.max <= 0 {
		f.max = 50 << 20
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if o.Base != "" {
		if f.base, err = canon.URL(o.Base); err != nil {
			return nil, fmt.Errorf("folder %s: base: %w: %w", dir, millrace.ErrInvalid, err)
		}
		f.base = asBase(f.base)
	}
	// A later change of the working directory moves nothing.
	if f.dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	t, err := f.refresh(context.Background())
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, pathError(err))
	}
	w := f.walker(t)
	for range pages(w.walk(context.Background(), ".")) {
		return f, nil
	}
	t.root.Close()
	if w.failed != nil {
		return nil, fmt.Errorf("folder %s: no page of it can be read: %w", dir, w.failed)
	}
	return nil, fmt.Errorf("folder %s: %w: there is no HTML page in it (.html, .htm, .xhtml)", dir, millrace.ErrInvalid)
}

// Close gives the open folder back. No other method may be called after it.
func (f *Folder) Close() error { return f.tree.Load().root.Close() }

// Changes walks the whole folder, whatever since is, in the bytewise order of
// the URLs, and holds the entries of one directory (and those above it) at a
// time. It yields a Put without a page for every page and ends with one Mark,
// which is Whole unless a directory could not be read. What is no page by its
// name or kind is a [*millrace.SkipError]. A folder that is gone is
// [millrace.ErrUnavailable]: nothing is known of its pages.
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
		w := f.walker(t)
		for e := range w.walk(ctx, ".") {
			if e.err != nil {
				if !yield(millrace.Change{}, &millrace.SkipError{URL: e.url, Err: e.err}) {
					return
				}
				continue
			}
			ref := millrace.Ref{URL: e.url, Version: t.version(e.info, f.now())}
			if !yield(millrace.Change{Kind: millrace.Put, Ref: ref}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(millrace.Change{}, fmt.Errorf("folder %s: %w", f.dir, err))
			return
		}
		yield(millrace.Change{Kind: millrace.Mark, Mark: &millrace.Milestone{
			Cursor: "walked", // every walk is a whole one: there is no place to resume from
			Whole:  w.failed == nil,
		}}, nil)
	}
}

// refresh gives the present tree. A folder that was replaced by another one of
// its name, as deployments do, is opened anew; the old one is closed by the
// garbage collector, once nobody reads from it any more.
func (f *Folder) refresh(ctx context.Context) (*tree, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errNoFolder
	}
	next := &tree{}
	if t := f.tree.Load(); t != nil && os.SameFile(t.info, info) {
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
	fmt.Fprintf(h, "%d %d %q %q", format, extract.Version, next.home, next.base)
	next.rules = strconv.FormatUint(h.Sum64(), 36)
	f.tree.Store(next)
	return next, nil
}

// racy is how long after a change a file may change again with the same size
// and the same times, on the file systems with the coarsest clocks.
const racy = 2 * time.Second

// stamp is what tells two states of a file apart without reading it.
type stamp struct {
	size, modified, changed int64 // bytes, nanoseconds since 1970
	inode                   uint64
}

// stampOf gives the stamp of a file, and whether it will move with the next
// change for certain.
func stampOf(info fs.FileInfo, now time.Time) (stamp, bool) {
	changed, inode := status(info)
	return stamp{info.Size(), info.ModTime().UnixNano(), changed.UnixNano(), inode}, now.Sub(changed) >= racy
}

// version gives the validator of a file in a state, "" if that may still
// change without a trace.
func (t *tree) version(info fs.FileInfo, now time.Time) string {
	s, sure := stampOf(info, now)
	if !sure {
		return ""
	}
	b := make([]byte, 0, 64)
	b = append(b, t.rules...)
	for _, n := range [...]uint64{uint64(s.size), uint64(s.modified), uint64(s.changed), s.inode} {
		b = append(b, '.')
		b = strconv.AppendUint(b, n, 36)
	}
	return string(b)
}

// pathError gives a file system's error the sentinel that says what to do,
// without the path: the caller names the file, as the site knows it.
func pathError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	switch {
	case errors.Is(err, errNoFolder):
		return fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", millrace.ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", millrace.ErrForbidden, err)
	}
	return fmt.Errorf("%w: %w", millrace.ErrUnavailable, err)
}
