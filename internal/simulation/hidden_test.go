package simulation

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/web"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// secret is a word that occurs only on pages that become hidden.
const secret = "quibberwick"

// never is a word that occurs only on a page that is always hidden.
const never = "snollygoster"

// hiddenSite is a site with pages that become hidden, and the servers that publish it.
type hiddenSite struct {
	t         *testing.T
	db        store.Store
	dir       string
	site      store.Site
	index     *index.Index
	server    *edition.Server
	gate      atomic.Pointer[gateway.Gateway]
	protocols []edition.Protocol
	conf      store.Config

	mu    sync.Mutex
	paths map[string]bool   // every path that ever existed
	tags  map[string]string // validators of responses with the secret
}

// publishers returns the taggers and the publishers of all protocols. It sets the
// names of the protocols in their options.
func publishers(o *protocol.PublisherOptions) (taggers []millrace.Tagger, published []edition.Protocol) {
	for _, p := range all.Protocols() {
		o.Protocols = append(o.Protocols, p.Name)
	}
	for _, p := range all.Protocols() {
		taggers = append(taggers, p.Tagger)
		published = append(published, edition.Protocol{Name: p.Name, Publisher: p.NewPublisher(o)})
	}
	return taggers, published
}

func (c *hiddenSite) open(v millrace.Visibility) {
	c.t.Helper()
	o := protocol.PublisherOptions{Own: []any{&web.PublisherOptions{LLMsFull: true}}, Policy: &millrace.Policy{Terms: base + "terms"}}
	c.conf = store.Config{Base: base, Visibility: v}
	c.conf.Taggers, c.protocols = publishers(&o)
	var err error
	if c.site, err = c.db.Site(c.t.Context(), "closet", base); err != nil {
		c.t.Fatal(err)
	}
	pub, err := c.site.Publication(c.t.Context(), c.conf)
	if err != nil {
		c.t.Fatal(err)
	}
	artifacts, err := artifactdir.Open(filepath.Join(c.dir, "files"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = artifacts.Close() })
	c.server = edition.NewServer(edition.Source{Store: c.db, Site: c.site, Publication: pub}, c.protocols, artifacts, &edition.Options{Search: c.index.View, Logger: slog.New(slog.DiscardHandler)})
	gate, err := gateway.New(c.server, &gateway.Options{Base: base, Visibility: v})
	if err != nil {
		c.t.Fatal(err)
	}
	c.publish()
	c.gate.Store(gate)
}

// follow updates the search index to the published edition.
func (c *hiddenSite) follow() {
	c.t.Helper()
	if err := c.index.Update(c.t.Context(), c.server.Current().View, nil); err != nil {
		c.t.Fatal(err)
	}
}

func (c *hiddenSite) publish() {
	c.t.Helper()
	if _, err := c.server.Publish(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	ed := c.server.Current()
	paths := append(ed.Large(), ed.ArtifactPaths()...)
	for _, proto := range c.protocols {
		for d, err := range proto.Publisher.All(c.t.Context(), ed.View) {
			if err != nil {
				c.t.Fatal(err)
			}
			paths = append(paths, d.Path)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range paths {
		c.paths[p] = true
	}
}

// guesses returns URLs that a client can derive from a page's URL.
func guesses(page string) []string {
	q := url.QueryEscape(page)
	return []string{
		page, page + "?x=1", strings.ToUpper(page), "/." + page, "/x/.." + page, "/%2e%2e" + page, strings.Replace(page, "s", "%73", 1),
		page + "/llm.json", page + "/llm/", page + ".md", page + "/index.md", page + ".html.md", "/openfeeder?url=" + q, "/openfeeder?url=" + q + "&limit=50",
		"/openfeeder?q=" + secret, "/openfeeder?since=2000-01-01T00:00:00Z", "/openfeeder?limit=50", "/llms-full.txt", "/feed.atom", "/feed.json",
	}
}

// leaks requests every path that ever existed. It returns those whose response contains
// the secret, or a validator from when it did.
func (c *hiddenSite) leaks(ctx context.Context, pages ...string) []string {
	c.mu.Lock()
	paths, tags := slices.Sorted(maps.Keys(c.paths)), maps.Clone(c.tags)
	c.mu.Unlock()
	for _, p := range pages {
		paths = append(paths, guesses(p)...)
	}
	var out []string
	for _, p := range append(paths, "/", "/robots.txt", "/sitemap.xml", "/.well-known/api-catalog") {
		for _, fields := range [][]string{nil, {"Accept-Encoding", "gzip"}, {"Accept", "text/markdown"}, {"If-None-Match", tags[p]}, {"Range", "bytes=0-9", "If-Range", tags[p]}} {
			if len(fields) > 0 && (fields[0] == "Accept" && !slices.Contains(pages, p) || fields[len(fields)-1] == "") {
				continue
			}
			w := c.ask(ctx, p, fields...)
			text := plain(w)
			switch {
			case bytes.Contains(text, []byte(never)):
				c.t.Errorf("%s %q contains text that was never public", p, fields)
			case bytes.Contains(text, []byte(secret)):
				out = append(out, fmt.Sprintf("%s %q: %d", p, fields, w.Code))
				if tag := w.Header().Get("Etag"); fields == nil && tag != "" {
					c.mu.Lock()
					c.tags[p] = tag
					c.mu.Unlock()
				}
			case w.Code == http.StatusNotModified || w.Code == http.StatusPartialContent:
				out = append(out, fmt.Sprintf("%s %q: %d", p, fields, w.Code))
			}
		}
	}
	return out
}

func (c *hiddenSite) ask(ctx context.Context, path string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	w := httptest.NewRecorder()
	u, err := url.Parse(path)
	if err != nil {
		c.t.Error(err)
		return w
	}
	r.URL = u
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	c.gate.Load().ServeHTTP(w, r)
	return w
}

// plain returns the header and the decoded body of a response. It skips Zstandard, because gzip
// has the same bytes.
func plain(w *httptest.ResponseRecorder) []byte {
	b := w.Body.Bytes()
	if w.Header().Get("Content-Encoding") == "gzip" {
		if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			b, _ = io.ReadAll(z)
		}
	}
	return fmt.Appendf(slices.Clone(b), "%v", w.Header())
}

// After a page is hidden, in any way, and an edition is published, no path of any protocol
// shows it. That includes old documents, cached responses and long-lived files.
func TestHiddenEverywhere(t *testing.T) {
	t.Parallel()
	page := func(path, text string, change func(*millrace.Page)) millrace.Change {
		p := &millrace.Page{
			URL: path, Title: "About " + text, Summary: "It is " + text + ".", Description: "All of " + text, Author: text, Tags: []string{text}, Kind: millrace.Article,
			Blocks: millrace.TextBlocks(strings.Repeat("There is "+text+" here. ", 20)), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
		}
		if change != nil {
			change(p)
		}
		return millrace.Change{Ref: millrace.Ref{URL: path}, Page: p}
	}
	for name, hide := range map[string]func(c *hiddenSite, was millrace.Change) error{
		"excluded": func(c *hiddenSite, _ millrace.Change) error {
			c.open(millrace.Visibility{Exclude: []string{"/s"}})
			return nil
		},
		"of a hidden kind": func(c *hiddenSite, _ millrace.Change) error {
			_, err := c.site.Apply(c.t.Context(), "source", []millrace.Change{page("/s/page", secret, func(p *millrace.Page) { p.Kind = millrace.Forum })})
			return err
		},
		"noindex": func(c *hiddenSite, _ millrace.Change) error {
			_, err := c.site.Apply(c.t.Context(), "source", []millrace.Change{page("/s/page", secret, func(p *millrace.Page) { p.Access.NoIndex = true })})
			return err
		},
		"protected": func(c *hiddenSite, _ millrace.Change) error {
			_, err := c.site.Apply(c.t.Context(), "source", []millrace.Change{page("/s/page", secret, func(p *millrace.Page) { p.Access.Auth = true })})
			return err
		},
		"gone": func(c *hiddenSite, _ millrace.Change) error {
			_, err := c.site.Apply(c.t.Context(), "source", []millrace.Change{{Kind: millrace.Delete, Ref: millrace.Ref{URL: "/s/page"}}})
			return err
		},
	} {
		if testing.Short() && name != "excluded" && name != "noindex" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &hiddenSite{t: t, dir: t.TempDir(), paths: map[string]bool{}, tags: map[string]string{}}
			var err error
			if c.db, err = stores.Open(t.Context(), filepath.Join(c.dir, "store.db"), nil); err != nil {
				t.Fatal(err)
			}
			if c.index, err = index.Open(t.Context(), filepath.Join(c.dir, "index.db"), nil); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := errors.Join(c.index.Close(), c.db.Close()); err != nil {
					t.Error(err)
				}
			})
			rule := millrace.Visibility{Kinds: []millrace.PageKind{millrace.Forum}}
			c.open(rule)
			was := page("/s/page", secret, nil)
			batch := []millrace.Change{was, page("/s/never", never, func(p *millrace.Page) { p.Access.Auth = true })}
			for i := range 4 {
				batch = append(batch, page(fmt.Sprintf("/p/%d", i), fmt.Sprint("number ", i), nil))
			}
			if _, err := c.site.Apply(t.Context(), "source", batch); err != nil {
				t.Fatal(err)
			}
			c.publish()
			c.follow() // found only until the page is hidden
			before := strings.Join(c.leaks(t.Context(), "/s/page", "/s/never"), "\n")
			for _, proto := range []string{"/s/page/llm.json", "/s/page/llm/", "/s/page.md", ".scp.gz", "/openfeeder?url=", "/openfeeder?q=", "/arc-sitemap.json", "/llms-full.txt", "/feed.atom"} {
				if !strings.Contains(before, proto) {
					t.Errorf("the public page is not at %s:\n%s", proto, before)
				}
			}

			// Other clients send requests all the time.
			ctx, cancel := context.WithCancel(t.Context())
			var asking sync.WaitGroup
			asking.Go(func() {
				for ctx.Err() == nil {
					c.leaks(ctx, "/s/page")
					time.Sleep(time.Millisecond)
				}
			})
			err = hide(c, was)
			if err == nil && name != "excluded" {
				c.publish()
			}
			found := c.leaks(t.Context(), "/s/page", "/s/never")
			cancel()
			asking.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if found = append(found, c.leaks(t.Context(), "/s/page", "/s/never")...); len(found) > 0 {
				t.Errorf("hidden, but shown by\n%s", strings.Join(found, "\n"))
			}

			// A later edition, and another process with the same files.
			if _, err := c.site.Apply(t.Context(), "source", []millrace.Change{page("/p/1", "something else", nil)}); err != nil {
				t.Fatal(err)
			}
			c.publish()
			c.follow()
			c.open(c.conf.Visibility)
			if later := c.leaks(t.Context(), "/s/page", "/s/never"); len(later) > 0 {
				t.Errorf("later shown by\n%s", strings.Join(later, "\n"))
			}
		})
	}
}
