package wordpress

import (
	"context"
	"fmt"
	"html"
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

// format is the version of this package in the versions of pages. It must be increased when the
// same item may result in another page or another URL.
const format = 1

// Options are the options of [New]. The zero value is valid.
type Options struct {
	// MaxBody is the maximum size of an API response in bytes. If it is zero, the maximum is 32 MB.
	// If a list is longer, it is fetched in smaller parts.
	MaxBody int64
	// Rules correct the extraction of the content. They may be nil. Only rules that drop elements,
	// or that keep parts of dropped elements, have an effect.
	Rules *extract.Rules
	// ExcludeTypes contains the slugs of types to skip, such as "page" or "product". Stored pages
	// of these types are deleted.
	ExcludeTypes []string
	// Now returns the current time. It is used if a response contains no time. If it is nil,
	// time.Now is used.
	Now    func() time.Time
	Logger *slog.Logger // If nil, nothing is logged.
}

// Site is a WordPress site. It is a [millrace.Source].
type Site struct {
	client    *http.Client
	root      *url.URL // canonical; the path ends in "/"
	max       int64
	rules     *extract.Rules
	skipTypes []string // slugs of types to skip
	now       func() time.Time
	log       *slog.Logger
	known     atomic.Pointer[site]   // last known properties, or nil
	warned    atomic.Pointer[string] // types that reportUnread has last logged as not found
	title     atomic.Pointer[title]  // last known title, or nil
}

// New returns the WordPress site whose home URL is root, such as https://example.com/blog/. It
// sends no request. If client is nil, New uses the guarded default client. If root is not an
// http(s) URL or has a query, New returns ErrInvalid.
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
	s := &Site{client: client, root: u, max: o.MaxBody, rules: o.Rules, skipTypes: o.ExcludeTypes, now: o.Now, log: o.Logger}
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

// Find returns the root of the WordPress site to which a URL belongs. It fetches the URL. If the
// page identifies itself as WordPress, Find also fetches the index of the API. If the page does not
// identify itself, or the site has no API, Find returns ErrNotFound. If the API is closed, Find
// returns ErrForbidden.
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

// parseRoot returns the canonical form of a root.
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
		return nil, fmt.Errorf("wordpress %s: root: %w: has a query", root, millrace.ErrInvalid)
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
		if u.RawPath != "" {
			u.RawPath += "/"
		}
	}
	return u, nil
}

// underRoot returns the URL under the root that corresponds to a link of the site. The scheme and
// host in links may differ from those of the root. If a link is not under the root, underRoot
// returns an error.
func (s *Site) underRoot(f *site, link string) (string, error) {
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
		return "", fmt.Errorf("%w: not under %s", millrace.ErrNotFound, s.root)
	}
	return c, nil
}

// title is the title of the site, and the time at which it was fetched.
type title struct {
	text string
	at   time.Time
}

// SiteTitle returns the title of the site in the settings of WordPress. It fetches the title at
// most once a day.
func (s *Site) SiteTitle(ctx context.Context) (string, error) {
	if t := s.title.Load(); t != nil && s.now().Sub(t.at) < 24*time.Hour {
		return t.text, nil
	}
	f := s.known.Load()
	if f == nil {
		return "", nil
	}
	var index struct {
		Name string `json:"name"`
	}
	if _, err := s.get(ctx, f.route("", url.Values{"_fields": {"name"}}), &index); err != nil {
		return "", fmt.Errorf("title of %s: %w", s.root, err)
	}
	s.title.Store(&title{html.UnescapeString(index.Name), s.now()})
	return s.title.Load().text, nil
}
