package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/millrace/millrace"
)

// pageServer is an ideal web server of the month's folder: brotli, strong validators, and no
// unnecessary header fields.
type pageServer struct {
	base  string // URL of the site
	mu    sync.RWMutex
	pages map[string]*servedPage       // pages and the sitemap, by path
	words map[[sha256.Size]byte]string // pages without the template, by hash of their HTML
	dates map[string]string            // dates in the sitemap, by path: last change of the page's own words
}

type servedPage struct {
	html, coded []byte
	tag         string
	page        *millrace.Page // extracted page; nil until it is needed
}

// sitemapPath is the path of the sitemap. Only one crawler uses it; for all others, the site has
// no sitemap.
const sitemapPath = "/pages-sitemap.xml"

// take sets the pages that the server serves. Its sitemap is ideal: it lists every page, and a
// page's date changes with its own words, but not with the template.
func (s *pageServer) take(shown, words map[string]string, at time.Time) error {
	if s.words == nil {
		s.words, s.dates = map[[sha256.Size]byte]string{}, map[string]string{}
	}
	was := map[string]string{}
	for path, p := range s.pages {
		was[path] = s.words[sha256.Sum256(p.html)]
	}
	shown = maps.Clone(shown)
	var sitemap strings.Builder
	sitemap.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		path := pathOf(name)
		s.words[sha256.Sum256([]byte(shown[name]))] = words[name]
		if was[path] != words[name] {
			s.dates[path] = at.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(&sitemap, "<url><loc>%s</loc><lastmod>%s</lastmod></url>\n", strings.TrimSuffix(s.base, "/")+path, s.dates[path])
	}
	shown[sitemapPath[1:]] = sitemap.String() + "</urlset>\n"
	next := make(map[string]*servedPage, len(shown))
	for name, html := range shown {
		path := pathOf(name)
		if old := s.pages[path]; old != nil && string(old.html) == html {
			next[path] = old
			continue
		}
		coded, err := compressed([]byte(html))
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(html))
		next[path] = &servedPage{html: []byte(html), coded: coded, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	s.mu.Lock()
	s.pages = next
	s.mu.Unlock()
	return nil
}

// pathOf returns the URL path of a page.
func pathOf(name string) string {
	if name == "index.html" || strings.HasSuffix(name, "/index.html") {
		return "/" + strings.TrimSuffix(name, "index.html")
	}
	return "/" + name
}

// compressed returns the bytes in brotli at the library's default level.
func compressed(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w := brotli.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

func (s *pageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	p := s.pages[r.URL.Path]
	s.mu.RUnlock()
	h := w.Header()
	switch {
	case r.URL.Path == "/index.html":
		h.Set("Location", "/")
		w.WriteHeader(http.StatusMovedPermanently)
		return
	case p == nil:
		h["Content-Type"] = nil
		w.WriteHeader(http.StatusNotFound)
		return
	}
	h.Set("Etag", p.tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == p.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := p.html
	if strings.Contains(r.Header.Get("Accept-Encoding"), "br") {
		h.Set("Content-Encoding", "br")
		body = p.coded
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body) // ignore the error: the client has disconnected
}

// pageCrawler keeps a copy of the site's HTML with the fewest requests: it follows
// links, requests every page once a round, and never requests a deleted page again.
type pageCrawler struct {
	base        string
	conditional bool
	sitemap     bool                    // fetch only pages that the sitemap lists as changed, and follow no links
	pages       map[string]*crawledPage // stored pages, by path
	gone        map[string]bool
	dates       map[string]string // dates in the sitemap, by path
}

type crawledPage struct {
	tag   string
	sum   [sha256.Size]byte // hash of the HTML
	links []string          // paths of the linked pages
	text  string            // the whole document, only for the sitemap
}

var href = regexp.MustCompile(`href="([^"#?:]+(?:\.html|/))["#]`)

// round requests every known page and the pages that they link to. With a sitemap, it requests only
// the pages that the sitemap lists as changed.
func (c *pageCrawler) round(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, MaxConnsPerHost: 4, DisableCompression: true}}
	defer client.CloseIdleConnections()
	if c.pages == nil {
		c.pages, c.gone = map[string]*crawledPage{"/": {}}, map[string]bool{}
	}
	todo := slices.Collect(maps.Keys(c.pages))
	if c.sitemap {
		var err error
		if todo, err = c.listed(ctx, client); err != nil {
			return err
		}
	}
	slices.Sort(todo)
	asked := make(map[string]bool)
	for len(todo) > 0 {
		type answer struct {
			path string
			page *crawledPage // nil = deleted
			err  error
		}
		answers := make(chan answer, len(todo))
		next := make(chan answer, len(todo)) // with the stored pages, for conditional requests
		for _, path := range todo {
			asked[path] = true
			next <- answer{path: path, page: c.pages[path]}
		}
		close(next)
		for range 4 {
			go func() {
				for a := range next {
					p, err := c.get(ctx, client, a.path, a.page)
					answers <- answer{a.path, p, err}
				}
			}()
		}
		found := map[string]bool{}
		for range todo {
			a := <-answers
			switch {
			case a.err != nil:
				return a.err
			case a.page == nil:
				delete(c.pages, a.path)
				c.gone[a.path] = true
				continue
			}
			c.pages[a.path] = a.page
			for _, link := range a.page.links {
				found[link] = true
			}
		}
		todo = todo[:0]
		for path := range found {
			if !asked[path] && !c.gone[path] && !c.sitemap {
				todo = append(todo, path)
			}
		}
		slices.Sort(todo)
	}
	return nil
}

var listedPage = regexp.MustCompile(`<loc>([^<]+)</loc><lastmod>([^<]+)</lastmod>`)

// listed reads the sitemap, drops stored pages that the sitemap does not list, and returns the paths
// of pages whose date changed.
func (c *pageCrawler) listed(ctx context.Context, client *http.Client) (todo []string, err error) {
	p, err := c.get(ctx, client, sitemapPath, c.pages[sitemapPath])
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errors.New("sitemap not found")
	}
	dates := map[string]string{}
	for _, m := range listedPage.FindAllStringSubmatch(p.text, -1) {
		path := "/" + strings.TrimPrefix(m[1], c.base)
		if dates[path] = m[2]; c.dates[path] != m[2] {
			todo = append(todo, path)
		}
	}
	maps.DeleteFunc(c.pages, func(path string, _ *crawledPage) bool { return dates[path] == "" })
	c.dates, c.pages[sitemapPath] = dates, p
	return todo, nil
}

func (c *pageCrawler) get(ctx context.Context, client *http.Client, path string, held *crawledPage) (*crawledPage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.base, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "millrace-bench/1.0 (+https://github.com/millrace/millrace)") // about as long as the User-Agent of millrace
	req.Header.Set("Accept-Encoding", "br, gzip")
	if c.conditional && held != nil && held.tag != "" {
		req.Header.Set("If-None-Match", held.tag)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusNotModified:
		return held, nil
	case http.StatusNotFound:
		_, err := io.Copy(io.Discard, resp.Body)
		return nil, err
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("%s: %s", path, resp.Status)
	}
	html, err := io.ReadAll(brotli.NewReader(resp.Body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return nil, err
	}
	p := &crawledPage{tag: resp.Header.Get("Etag"), sum: sha256.Sum256(html)}
	if path == sitemapPath {
		p.text = string(html)
	}
	for _, m := range href.FindAllStringSubmatch(string(html), -1) {
		// Resolve links relative to the root, because all pages with such links are there.
		p.links = append(p.links, pathOf(strings.TrimPrefix(m[1], "/")))
	}
	return p, nil
}

// compare counts the pages whose own words differ from the server's, and lists those
// that the server has deleted.
func (c *pageCrawler) compare(s *pageServer) (wrong int, left []string) {
	for path, p := range s.pages {
		if held := c.pages[path]; path != sitemapPath && (held == nil || s.words[held.sum] != s.words[sha256.Sum256(p.html)]) {
			wrong++
		}
	}
	for path := range c.pages {
		if s.pages[path] == nil {
			left = append(left, path)
		}
	}
	return wrong, left
}

// serveHTML starts an ideal web server for the folder.
func serveHTML(ctx context.Context, s *pageServer) (address string, stop func(), err error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(ln) }() // Serve returns when srv is closed
	return ln.Addr().String(), func() { _ = srv.Close() }, nil
}
