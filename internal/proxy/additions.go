package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
)

// additions are the links and elements that are added to a page.
type additions struct {
	fields   []string // values of the Link field
	vary     []string // request fields that select the page or the target of a link
	elements []byte   // elements for the head of the HTML, or nil
	mark     string   // hash of the elements, or ""
	sum      string   // hash of all additions
}

var nothing = new(additions)

// newAdditions returns the additions for links, and for JSON-LD in the page's head. If elements is
// set, every link is also an element.
func newAdditions(links []millrace.Link, data []json.RawMessage, elements bool) *additions {
	if len(links)+len(data) == 0 {
		return nothing
	}
	a := new(additions)
	h, all := fnv.New64a(), fnv.New64a()
	mark := func(s string) {
		_, _ = io.WriteString(h, s+"\n") // writing to a hash never fails
		a.mark = "~" + strconv.FormatUint(h.Sum64(), 36)
	}
	defer func() { a.sum = a.mark + "/" + strconv.FormatUint(all.Sum64(), 36) }()
	for _, l := range links {
		value := l.String()
		fmt.Fprintln(all, value, l.Vary, l.NoField)
		if l.Vary != "" && !slices.Contains(a.vary, l.Vary) {
			a.vary = append(a.vary, l.Vary)
		}
		if !l.NoField {
			a.fields = append(a.fields, value)
		}
		if l.HTML || elements {
			mark(value)
			a.elements = append(a.elements, element(l)...)
		}
	}
	for _, d := range data {
		if s := script(d); s != "" {
			mark(s)
			a.elements = append(a.elements, s...)
		}
	}
	return a
}

// header adds the fields to the header of a page.
func (a *additions) header(h http.Header) {
	if len(a.fields) > 0 {
		h["Link"] = append(h["Link"], a.fields...)
	}
	for _, field := range a.vary {
		addVary(h, field)
	}
}

// size returns the approximate size of the additions in memory, in bytes.
func (a *additions) size() int {
	n := 64 + len(a.elements)
	for _, f := range a.fields {
		n += 16 + len(f)
	}
	return n
}

// additionsCache caches the additions of requested pages for one edition, to avoid reading the
// store for each request. It drops entries in generations, so its size is bounded.
type additionsCache struct {
	mu         sync.Mutex
	at         *home // the edition and home page of the entries
	young, old map[string]*additions
	bytes      int // size of the entries in young
}

// maxAdditions is the maximum size in bytes of the entries in one generation. The cache has
// two generations.
const maxAdditions = 4 << 20

func (c *additionsCache) get(at *home, page string) *additions {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != at {
		return nil
	}
	a := c.young[page]
	if a == nil {
		if a = c.old[page]; a != nil {
			c.add(page, a)
		}
	}
	return a
}

func (c *additionsCache) put(at *home, page string, a *additions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != at {
		c.at, c.young, c.old, c.bytes = at, nil, nil, 0
	}
	c.add(page, a)
}

// add adds an entry. The caller holds the lock.
func (c *additionsCache) add(page string, a *additions) {
	n := len(page) + a.size()
	if n > maxAdditions/64 {
		return
	}
	if c.bytes+n > maxAdditions {
		c.young, c.old, c.bytes = nil, c.young, 0
	}
	if c.young == nil {
		c.young = make(map[string]*additions)
	}
	c.young[page] = a
	c.bytes += n
}

// additions returns the additions of a page; the path of r is relative to the base.
func (p *Pages) additions(ed *edition.Edition, at *home, r *http.Request) *additions {
	page := r.URL.EscapedPath()
	key := page
	if r.URL.RawQuery != "" {
		key += "?" + r.URL.RawQuery
	}
	if a := p.added.get(at, key); a != nil {
		return a
	}
	links, data, err := p.links(r.Context(), ed, at, page, r.URL.RawQuery)
	a := newAdditions(links, data, p.o.Elements)
	if err == nil {
		p.added.put(at, key, a)
	}
	return a
}

// links returns the links of a page, and the JSON-LD for its head. For the home page, the links of
// the site come first. It logs errors and omits the links that failed.
func (p *Pages) links(ctx context.Context, ed *edition.Edition, at *home, page, query string) (out []millrace.Link, data []json.RawMessage, failed error) {
	here := page
	if p.front != nil && query != "" {
		here += "?" + query
	}
	if here == at.path {
		out = append(out, p.o.Home(ed)...)
		for _, n := range ed.Advertisements {
			out = append(out, n.Root...)
			data = append(data, n.RootData...)
		}
	}
	for _, n := range ed.Advertisements {
		if n.Page == nil {
			continue
		}
		links, err := pageLinks(ctx, n, page, query, p.front != nil)
		if err != nil {
			failed = err
		}
		out = append(out, links...)
	}
	if failed != nil && ctx.Err() == nil { // log once for all protocols; the page is served without these links
		p.o.Logger.Error("could not read links of page", "path", access.Redact(page), "err", failed)
	}
	return out, data, failed
}

// pageLinks returns the links of the page with its query. If it finds none and made is not set, it
// returns the links of the page without the query. Set made for pages of a server, which may
// depend on the query; files do not.
func pageLinks(ctx context.Context, n millrace.Advertisement, pagePath, query string, made bool) ([]millrace.Link, error) {
	if query != "" {
		links, err := n.Page(ctx, pagePath+"?"+query)
		if len(links) > 0 || err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return links, err
		}
		if made {
			return nil, nil
		}
	}
	links, err := n.Page(ctx, pagePath)
	if errors.Is(err, millrace.ErrNotFound) {
		return nil, nil
	}
	return links, err
}

// mayTransform reports whether a response may be changed (RFC 9111, section
// 5.2.2.6).
func mayTransform(h http.Header) bool {
	for _, v := range h["Cache-Control"] {
		if strings.Contains(strings.ToLower(v), "no-transform") {
			return false
		}
	}
	return true
}
