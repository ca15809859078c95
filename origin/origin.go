// Package origin describes how to read sites without a protocol, either from a folder of files or
// over the network. Each origin is a package below this one, with a function Origin. Package
// origin/all lists the origins.
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

// Origin is a way of reading a site.
type Origin struct {
	Name   string // name such as folder; part of the names of sources in a store
	Title  string // name for people, such as WordPress's REST API
	Folder bool   // whether the origin reads a folder of files; otherwise, it reads a URL
	// Detect returns the home of the site to which a folder or URL belongs. If this origin cannot
	// read the site, Detect returns [millrace.ErrNotFound]. If Detect is nil, the origin can read
	// every site.
	Detect func(ctx context.Context, client *http.Client, source string) (home string, err error)
	// Built returns the folder with the site that a generator has built from dir. ok is false if
	// the built site does not exist. Built may be nil.
	Built func(dir string) (built string, ok bool)
	Open  func(source string, o *Options) (*Source, error)

	Types        bool // whether the origin supports Options.ExcludeTypes
	ByFile       bool // whether URLs of its pages are paths relative to the base
	SingleStream bool // whether the origin cannot read single pages
	Progress     bool // whether the origin calls Options.Progress
}

// Options are the options for opening a source. The zero value is valid for a folder.
type Options struct {
	Base         string         // URL at which a folder is served; links in its pages are resolved against this URL
	Client       *http.Client   // client for requests to sites. If nil, the guarded default client.
	Rules        *extract.Rules // corrections of the extraction, or nil
	ExcludeTypes []string       // types of pages to skip
	Logger       *slog.Logger   // If nil, nothing is logged.

	// KnownRefs and Original return data of the source that a store contains. They may be nil. See
	// [millrace.SyncState] and [millrace.OriginalStore].
	KnownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]
	Original  func(ctx context.Context, url string) ([]byte, error)
	// MaxPages, MaxDepth and MaxTime limit one scan of a site. Zero means the default.
	MaxPages, MaxDepth int
	MaxTime            time.Duration
	// If IgnoreRobots is set, pages that robots.txt disallows are read, too. The client must ignore
	// robots.txt as well.
	IgnoreRobots bool
	// RejectUniform makes even the first scan fail if the site returns the same page for every URL.
	// It is for a store whose pages of the site came from another source.
	RejectUniform bool
	// Progress is called with the number of processed URLs and the number of known URLs. It may be
	// nil.
	Progress func(done, known int)
}

// Source is an open site.
type Source struct {
	millrace.Source
	// Watch calls changed when a page may have changed, until the context ends. If Watch is nil,
	// changes are found only by scans.
	Watch func(ctx context.Context, changed func()) error
	// Next returns the time at which the next scan is useful. If Next is nil, a scan is useful at
	// any time.
	Next func() time.Time
	// SiteTitle returns the site's own title after a scan, or "" if the title is unknown. If
	// SiteTitle is nil, the title is always unknown.
	SiteTitle func(ctx context.Context) (string, error)
	// Complete reports whether the last scan covered the whole site. If Complete is nil, every scan
	// does.
	Complete func() bool
	// Files contains the site's own pages and files. It is nil if these cannot be served unchanged.
	Files Files
	// Close releases the resources of the source. It may be nil.
	Close func() error
}

// Files is a folder of HTML that a server can serve.
type Files interface {
	fs.FS
	// Lookup returns the file for a path, or the path of a redirect. The path is percent-encoded
	// and relative to the base. If the file does not exist, Lookup returns [millrace.ErrNotFound].
	Lookup(urlPath string) (file, redirect string, err error)
	// Peek returns the state of a file by its name. It follows links out of the folder; the files
	// there must not be served.
	Peek(name string) (fs.FileInfo, error)
	// Original returns the HTML of a page, and the options for its extraction, without rules.
	Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error)
}
