// Package origin describes how to read sites that support no protocol: from a folder of files,
// or over the network. Each origin is a package below this one with a function Origin. Package
// origin/all lists them.
package origin

import (
	"context"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// Origin is one way to read a site.
type Origin struct {
	Name   string // such as folder; part of the names of sources in a store
	Title  string // display name, such as WordPress's REST API
	Folder bool   // the origin reads a folder of files; otherwise a URL
	// Detect returns the home of the site that a folder or URL belongs to. [millrace.ErrNotFound]:
	// this origin cannot read the site. If nil, the origin can read every site.
	Detect func(ctx context.Context, client *http.Client, source string) (home string, err error)
	// Built returns the folder of the site that a generator has built from a folder, if there
	// is one. It may be nil.
	Built func(dir string) (built string, ok bool)
	Open  func(source string, o *Options) (*Source, error)

	Types        bool // the origin supports Options.ExcludeTypes
	ByFile       bool // URLs of its pages are paths relative to the base
	SingleStream bool // the origin cannot read single pages
	Progress     bool // the origin calls Options.Progress
}

// Options are the options for opening a source. The zero value works for a folder.
type Options struct {
	Base         string         // URL at which a folder is served; resolves the links of its pages
	Client       *http.Client   // client for sites; nil = the guarded default
	Rules        *extract.Rules // corrections of the extraction; nil = none
	ExcludeTypes []string       // types of pages to skip
	Logger       *slog.Logger   // nil = discard

	// KnownRefs and Original return the data that a store has from the source; nil = none. See
	// [millrace.SyncState] and [millrace.OriginalStore].
	KnownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]
	Original  func(ctx context.Context, url string) ([]byte, error)
	// MaxPages, MaxDepth and MaxTime limit one scan of a site; 0 = the default.
	MaxPages, MaxDepth int
	MaxTime            time.Duration
	// IgnoreRobots reads pages that robots.txt disallows. The client must also ignore robots.txt.
	IgnoreRobots bool
	// Wary is for a store whose pages of the site came from another source. If set, even the first
	// scan fails if the site returns the same page for every URL.
	Wary bool
	// Progress is called with the numbers of processed and of known URLs. It may be nil.
	Progress func(done, known int)
}

// Source is an open site.
type Source struct {
	millrace.Source
	// Watch calls changed when a page may have changed, until the context ends. If nil, only
	// scans find changes.
	Watch func(ctx context.Context, changed func()) error
	// Next returns the time of the next useful scan; nil = any time.
	Next func() time.Time
	// SiteTitle returns the site's own title, after a scan; "" = unknown. If nil, the title is
	// unknown.
	SiteTitle func(ctx context.Context) (string, error)
	// Complete reports whether the last scan covered the whole site; nil = always.
	Complete func() bool
	// Files are the site's own pages and files, if they can be served unchanged; nil = they
	// cannot.
	Files Files
	// Close releases the resources of the source; nil = nothing to close.
	Close func() error
}

// Files is a folder of HTML that a server can serve.
type Files interface {
	fs.FS
	// Lookup returns the file for a path, percent-encoded and relative to the base, or the path to
	// redirect to. [millrace.ErrNotFound]: the file does not exist.
	Lookup(urlPath string) (file, redirect string, err error)
	// Peek returns the state of a file by its name. It follows links out of the folder, whose
	// targets must not be served.
	Peek(name string) (fs.FileInfo, error)
	// Original returns the HTML of a page, and its extraction options without rules.
	Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error)
}
