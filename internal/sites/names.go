package sites

import (
	"context"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/subrequest"
)

// Names that many make documents at, so that a site may have its own, which then
// is what its owner wants there: lists for language models, feeds, and Markdown.
// Unlike a sitemap they cannot be composed.
const (
	ownNameAge  = time.Minute      // how long it is remembered whether there is one
	ownNameTime = 2 * time.Second  // that the site has to say so
	ownNameRest = 10 * time.Second // that it is left alone if it did not
	maxOwnNames = 10_000           // that are remembered
)

// ownNames remembers which names the site uses itself.
type ownNames struct {
	mu    sync.Mutex
	known map[string]ownName // by path
	rest  time.Time          // no request before
	said  map[string]bool    // what was logged, by kind
}

type ownName struct {
	there bool
	until time.Time
}

// Own reports whether a request is for a file of the site's own, at a name
// that a document of ours may have as well. r is relative to the base.
func (d *Documents) Own(r *http.Request) bool {
	if d.o.Origin == nil || d.docs != d.o.Base || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	kind := path.Base(r.URL.Path)
	switch {
	case kind == "llms.txt", r.URL.Path == "/llms-full.txt", r.URL.Path == "/feed.atom", r.URL.Path == "/feed.json":
	case strings.HasSuffix(kind, ".md"):
		kind = "*.md"
	default:
		return false
	}
	return d.names.there(r.URL.Path, func(was bool) (there, known bool) {
		there, known = d.hasFile(r)
		if there && !was && d.names.first(kind) {
			d.o.Log.Info("the site has a file of its own at a name of ours, and it is served", "path", access.Redact(r.URL.Path), "kind", kind)
		}
		return there, known
	})
}

// hasFile asks the site for a file by its head. A page, such as one that stands
// for all that is not there, is none. It is not known if the site does not say.
func (d *Documents) hasFile(r *http.Request) (there, known bool) {
	// What is learned is for all, not only for the client of this request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ownNameTime)
	defer cancel()
	own := subrequest.File(d.o.Origin, r.WithContext(ctx), http.MethodHead, r.URL.Path, 0)
	kind, _, _ := mime.ParseMediaType(own.Header.Get("Content-Type"))
	there = own.Status == http.StatusOK && kind != "text/html" && kind != "application/xhtml+xml"
	return there, ctx.Err() == nil && own.Status != 0 && own.Status < 500 && own.Status != http.StatusTooManyRequests
}

// there returns what is known of a path, else what ask says. ask receives the
// previous value, which stays valid if ask fails.
func (n *ownNames) there(at string, ask func(was bool) (there, known bool)) bool {
	now := time.Now()
	n.mu.Lock()
	have := n.known[at]
	resting := now.Before(n.rest)
	n.mu.Unlock()
	if resting || now.Before(have.until) {
		return have.there
	}
	there, known := ask(have.there)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !known {
		n.rest = time.Now().Add(ownNameRest)
		return have.there
	}
	if n.known == nil || len(n.known) >= maxOwnNames {
		n.known = make(map[string]ownName)
	}
	n.known[strings.Clone(at)] = ownName{there, time.Now().Add(ownNameAge)}
	return there
}

// first reports whether a kind of name was not logged yet.
func (n *ownNames) first(kind string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.said[kind] {
		return false
	}
	if n.said == nil {
		n.said = make(map[string]bool)
	}
	n.said[kind] = true
	return true
}
