// Package origin describes how the sites are read that speak no protocol: from a
// folder of files, or over the network. Each way is a package below this one with a
// function Origin; package origin/all lists them.
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
	Name   string // such as folder; sources in a store are named by it
	Title  string // for people, such as WordPress's REST API
	Folder bool   // it reads a folder of files; others read a URL
	// Detect returns the home of the site that a folder or URL belongs to, if the site
	// can be read this way. [millrace.ErrNotFound]: it cannot. nil = every site can.
	Detect func(ctx context.Context, client *http.Client, source string) (home string, err error)
	Open   func(source string, o *Options) (*Source, error)

	Types        bool // it knows the types of pages, so that Options.ExcludeTypes counts
	ByFile       bool // its pages are named by paths relative to the base
	SingleStream bool // pages cannot be read singly
	Progress     bool // it calls Options.Progress
}

// Options say how a source is opened. The zero value works for a folder.
type Options struct {
	Base         string         // URL of the pages of a folder, which their links are resolved against
	Client       *http.Client   // for sites; nil = the guarded default
	Rules        *extract.Rules // correct the extraction; nil = none
	ExcludeTypes []string       // types of pages that are not read
	Logger       *slog.Logger   // nil = discard

	// KnownRefs and Original return what a store has of the source; nil = nothing.
	KnownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]
	Original  func(ctx context.Context, url string) ([]byte, error)
	// MaxPages, MaxDepth and MaxTime limit one scan of a site; 0 = the default.
	MaxPages, MaxDepth int
	MaxTime            time.Duration
	// IgnoreRobots reads what robots.txt disallows. The client must ignore it, too.
	IgnoreRobots bool
	// Wary is for a store that has the pages of the site from elsewhere: a site that
	// answers every address with one page is not believed in the first scan either.
	Wary bool
	// Progress is called with how many of the known addresses are done; nil = not called.
	Progress func(done, known int)
}

// Source is a site that is open.
type Source struct {
	millrace.Source
	// Watch calls changed when something may have changed, until the context ends; nil =
	// only a scan tells.
	Watch func(ctx context.Context, changed func()) error
	// Next returns when another scan is worth it; nil = at any time.
	Next func() time.Time
	// Complete reports whether the last scan was of the whole site; nil = always.
	Complete func() bool
	// Files are the site's own pages and files, if they can be served as they are; nil =
	// they cannot.
	Files Files
	// Close ends the use of the source; nil = nothing to close.
	Close func() error
}

// Files are a folder of HTML.
type Files interface {
	fs.FS
	// Lookup returns the file for a path, percent-encoded and relative to the base, or
	// the path to go to instead. [millrace.ErrNotFound]: it has no file.
	Lookup(urlPath string) (file, redirect string, err error)
	// Peek returns the state of a file by its name, also of one that a link leads to
	// which nothing may be served from.
	Peek(name string) (fs.FileInfo, error)
	// Original returns the HTML of a page, and how it is extracted but for rules.
	Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error)
}
