package caddy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/publish"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// Publications and stores survive the reload of the configuration.
var (
	sites  = caddy.NewUsagePool() // *site by siteKey
	opened = caddy.NewUsagePool() // *openStore by file
)

// siteKey identifies a publication. Other values of a handler may change while the publication
// runs.
type siteKey struct{ base, source, store string }

// site is the publication of a site. Handlers of several configurations can be attached to it; the
// options and the routes of the newest handler apply.
type site struct {
	siteKey
	log    *slog.Logger
	files  *openStore
	src    millrace.Source
	server atomic.Pointer[publish.Server] // nil = not opened yet
	wake   chan struct{}                  // signals that the newest handler may have changed
	stop   context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	attached []*Handler
}

// openStore is a store with its artifacts.
type openStore struct {
	store.Store
	artifacts artifact.Store
	close     func() error
}

// Destruct implements [caddy.Destructor].
func (s *openStore) Destruct() error { return errors.Join(s.close(), s.Close()) }

// open opens the store at a file or in a database, with the folder of its artifacts.
func open(file string) (caddy.Destructor, error) {
	s := &openStore{close: func() error { return nil }}
	if file != stores.Memory {
		files := file
		if stores.IsPostgres(file) {
			files = dataFile(stores.Name(file))
		}
		if err := os.MkdirAll(filepath.Dir(files), 0o700); err != nil {
			return nil, err
		}
		artifacts, err := artifactdir.Open(files + "-files")
		if err != nil {
			return nil, err
		}
		s.artifacts, s.close = artifacts, artifacts.Close
	}
	var err error
	if s.Store, err = stores.Open(context.Background(), file, nil); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// dataFile returns the path of a file in Caddy's data folder.
func dataFile(name string) string {
	name = strings.NewReplacer("/", "_", ":", "_").Replace(strings.Trim(name, "/"))
	return filepath.Join(caddy.AppDataDir(), "millrace", name+".db")
}

// start attaches the handler to the publication of its site.
func (h *Handler) start(at *place) error {
	base, err := at.base()
	if h.BaseURL != "" {
		base, err = h.BaseURL, nil
	}
	if err != nil {
		return err
	}
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	here := *at
	if here.name == "" {
		here.name, here.host = u.Hostname(), u.Host
	}
	h.place = &here
	key := siteKey{base, h.Source, h.Store}
	if key.source == "" {
		key.source = here.source(u)
	}
	if key.store == "" {
		key.store = dataFile(u.Host + u.Path)
	}
	s, _, err := sites.LoadOrNew(key, func() (caddy.Destructor, error) { return newSite(key), nil })
	if err != nil {
		return err
	}
	h.site = s.(*site)
	h.site.attach(h)
	return nil
}

// source returns the root folder of the site if it has a file index.html, otherwise "site".
func (p *place) source(base *url.URL) string {
	var root string
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: cmp.Or(base.Path, "/")}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Body: http.NoBody}
	p.ask(discard{}, r, &root)
	if root != "" {
		if _, err := os.Stat(filepath.Join(root, "index.html")); err == nil {
			return root
		}
	}
	return fromSite
}

// discard is the writer of a request whose response is not used.
type discard struct{}

func (discard) Header() http.Header         { return make(http.Header) }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// newSite returns a running publication without handlers.
func newSite(key siteKey) *site {
	s := &site{siteKey: key, log: newLog(key.base), wake: make(chan struct{}, 1), done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.run(ctx)
	return s
}

// open opens the source and the store.
func (s *site) open() error {
	if s.src == nil && s.source == fromSite {
		s.src = publish.Handler(http.HandlerFunc(s.visit))
	} else if s.src == nil {
		f, err := folder.New(s.source, &folder.Options{Base: s.base, Logger: s.log})
		if err != nil {
			return err
		}
		s.src = f
	}
	if s.files == nil {
		files, _, err := opened.LoadOrNew(s.siteKey.store, func() (caddy.Destructor, error) { return open(s.siteKey.store) })
		if err != nil {
			return fmt.Errorf("store %s: %w", s.siteKey.store, err)
		}
		s.files = files.(*openStore)
	}
	return nil
}

// Destruct ends the publication.
func (s *site) Destruct() error {
	s.stop()
	<-s.done
	var all []error
	if server := s.server.Load(); server != nil {
		all = append(all, server.Close())
	}
	if s.files != nil {
		_, err := opened.Delete(s.siteKey.store)
		all = append(all, err)
	}
	if c, ok := s.src.(io.Closer); ok {
		all = append(all, c.Close())
	}
	return errors.Join(all...)
}

// attach makes a handler the newest one.
func (s *site) attach(h *Handler) {
	s.mu.Lock()
	s.attached = append(s.attached, h)
	s.mu.Unlock()
	s.notify()
}

// detach removes a handler. If its configuration could not be started, the previous handler becomes
// the newest again.
func (s *site) detach(h *Handler) error {
	s.mu.Lock()
	last := s.attached[len(s.attached)-1] == h
	s.attached = slices.DeleteFunc(s.attached, func(o *Handler) bool { return o == h })
	s.mu.Unlock()
	if last {
		s.notify()
	}
	_, err := sites.Delete(s.siteKey)
	return err
}

func (s *site) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// newest returns the newest handler; nil = none.
func (s *site) newest() *Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attached) == 0 {
		return nil
	}
	return s.attached[len(s.attached)-1]
}

// The first and the longest pause before a retry.
const (
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// run publishes with the options of the newest handler until the context ends. After a failure, it
// tries again.
func (s *site) run(ctx context.Context) {
	defer close(s.done)
	var applied string // options of the publication
	retry := firstRetry
	for ctx.Err() == nil {
		var pause <-chan time.Time
		switch h := s.newest(); {
		case h == nil:
		case h.print() == applied: // the routes of the site may have changed
			s.server.Load().Changed()
		default:
			if err := s.apply(ctx, h); err == nil {
				applied, retry = h.print(), firstRetry
				break
			} else if ctx.Err() == nil && s.newest() == h {
				s.log.Warn("site cannot be published; trying again", "err", err)
				pause, retry = time.After(retry), min(2*retry, lastRetry)
				break
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-pause:
		}
	}
}

// apply publishes with the options of a handler. It returns when an edition is published, or when
// there is a newer handler with other options.
func (s *site) apply(ctx context.Context, h *Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.publish(ctx, h) }()
	again := false
	for {
		select {
		case err := <-done:
			if again {
				s.notify()
			}
			return err
		case <-s.wake:
			again = true // the routes of the site may have changed
			if now := s.newest(); now == nil || now.print() != h.print() {
				s.notify() // wakes run
				cancel()
				return <-done
			}
		}
	}
}

// publish opens the publication and waits for its first edition, or changes its options.
func (s *site) publish(ctx context.Context, h *Handler) error {
	if err := s.open(); err != nil {
		return err
	}
	o := h.options()
	o.Next, o.Public, o.Logger = http.HandlerFunc(s.pass), http.HandlerFunc(s.visit), s.log
	o.Store, o.Artifacts = s.files.Store, s.files.artifacts
	if server := s.server.Load(); server != nil {
		return server.Reload(ctx, o)
	}
	server, err := publish.New(ctx, s.src, o)
	if err != nil {
		return err
	}
	s.server.Store(server)
	if err := server.Ready(ctx); err != nil {
		return err
	}
	s.log.Info("site is published", "url", s.base, "source", s.source)
	return nil
}
