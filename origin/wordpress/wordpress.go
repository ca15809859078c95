package wordpress

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// format is the version of this package's own part in a page. It rises
// whenever the same item may give another page or another URL.
const format = 1

// Options of [New]. The zero value works.
type Options struct {
	// MaxBody is the most bytes that one answer of the API may have; 0 = 32 MB.
	// A list that is longer is asked for in smaller parts.
	MaxBody int64
	// Rules correct the extraction of the content: those that drop count, and
	// those that keep a part of what they drop. nil = none.
	Rules *extract.Rules
	// ExcludeTypes are the slugs of the types that are not read, such as "page" or
	// "product". Pages of theirs that were read before are absent from then on.
	ExcludeTypes []string
	// Now returns the time if the server sends none; nil = time.Now.
	Now    func() time.Time
	Logger *slog.Logger // nil = discard
}

// Site is a WordPress site. It is a [millrace.Source].
type Site struct {
	client *http.Client
	root   *url.URL // canonical; the path ends in "/"
	max    int64
	rules  *extract.Rules
	not    []string // types that are not read
	now    func() time.Time
	log    *slog.Logger
	known  atomic.Pointer[site]   // what was found last; nil = nothing yet
	warned atomic.Pointer[string] // the types of which unread has warned last
}

// New returns the WordPress site whose root is the URL of its home, such as
// https://example.com/blog/, without asking it anything. A nil client is the
// guarded default. ErrInvalid: the root is no http(s) URL, or has a query.
func New(client *http.Client, root string, o *Options) (*Site, error) {
	if client == nil {
		client = fetch.New(nil).HTTP()
	}
	if o == nil {
		o = &Options{}
	}
	u, err := parseRoot(root)
	if err != nil {
		return nil, err
	}
	s := &Site{client: client, root: u, max: o.MaxBody, rules: o.Rules, not: o.ExcludeTypes, now: o.Now, log: o.Logger}
	if s.max <= 0 {
		s.max = 32 << 20
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Find looks for a WordPress site at any URL of it and returns its root. It
// asks for the URL, and, if that says that it is of WordPress, for the index of
// the API. ErrNotFound: it does not say so, or there is no API. ErrForbidden:
// the API is closed.
func Find(ctx context.Context, client *http.Client, at string) (string, error) {
	c, err := canon.URL(at)
	if err != nil {
		return "", fmt.Errorf("wordpress %s: %w: %w", at, millrace.ErrInvalid, err)
	}
	u, err := url.Parse(c)
	if err != nil {
		return "", fmt.Errorf("wordpress %s: %w: %w", at, millrace.ErrInvalid, err)
	}
	dir := *u
	dir.RawQuery, dir.RawPath = "", ""
	dir.Path = dir.Path[:strings.LastIndexByte(dir.Path, '/')+1]
	s, err := New(client, dir.String(), nil)
	if err != nil {
		return "", err
	}
	f, err := s.discover(ctx, u, true, cursor{})
	if err != nil {
		return "", fmt.Errorf("wordpress %s: %w", at, err)
	}
	return f.home.String(), nil
}

// parseRoot returns a root in its canonical form.
func parseRoot(root string) (*url.URL, error) {
	c, err := canon.URL(root)
	if err != nil {
		return nil, fmt.Errorf("wordpress %s: root: %w: %w", root, millrace.ErrInvalid, err)
	}
	u, err := url.Parse(c)
	if err != nil {
		return nil, fmt.Errorf("wordpress %s: root: %w: %w", root, millrace.ErrInvalid, err)
	}
	if u.RawQuery != "" {
		return nil, fmt.Errorf("wordpress %s: root: %w: it has a query", root, millrace.ErrInvalid)
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
		if u.RawPath != "" {
			u.RawPath += "/"
		}
	}
	return u, nil
}

// place returns the URL under the root of what the site calls link: WordPress
// may know itself by another scheme or host than those by which it was reached.
// A link that is not under the root is an error.
func (s *Site) place(f *site, link string) (string, error) {
	c, err := canon.URL(link)
	if err != nil {
		return "", fmt.Errorf("%w: link: %w", millrace.ErrInvalid, err)
	}
	u, err := url.Parse(c)
	if err != nil {
		return "", fmt.Errorf("%w: link: %w", millrace.ErrInvalid, err)
	}
	if u.Host == f.home.Host || u.Host == f.at.Host {
		u.Scheme, u.Host = s.root.Scheme, s.root.Host
	}
	if c = u.String(); !strings.HasPrefix(c, s.root.String()) {
		return "", fmt.Errorf("%w: it is not under %s", millrace.ErrNotFound, s.root)
	}
	return c, nil
}
