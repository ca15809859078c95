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

// Limits of the requests for the site's own files at the paths of documents that are not merged:
// lists for language models, feeds, and Markdown. If the site has such a file, the file takes
// precedence.
const (
	ownNameAge  = time.Minute      // lifetime of a result
	ownNameTime = 2 * time.Second  // time limit of the request
	ownNameRest = 10 * time.Second // pause after a failure
	maxOwnNames = 10_000           // maximum number of cached results
)

// ownNames caches whether the site has its own files at these paths.
type ownNames struct {
	mu     sync.Mutex
	known  map[string]ownName // results by path
	rest   time.Time          // time before which no request is sent
	logged map[string]bool    // kinds of names that were logged
}

type ownName struct {
	there bool
	until time.Time
}

// Own reports whether a request is for the site's own file at a path where millrace may also have a
// document. The path of r is relative to the base.
func (d *Documents) Own(r *http.Request) bool {
	if d.o.Origin == nil || d.endpoints != d.o.Base || r.Method != http.MethodGet && r.Method != http.MethodHead {
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
			d.o.Logger.Info("site's own file takes precedence over a document", "path", access.Redact(r.URL.Path), "kind", kind)
		}
		return there, known
	})
}

// hasFile reports whether the site has its own file at the path of r. It sends a HEAD request, and
// ignores HTML, because a site may send a page for every path. After an error, known is false.
func (d *Documents) hasFile(r *http.Request) (there, known bool) {
	// All clients share the result, so the request must not end when the client of this request
	// disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), ownNameTime)
	defer cancel()
	own := subrequest.File(d.o.Origin, r.WithContext(ctx), http.MethodHead, r.URL.Path, 0)
	kind, _, _ := mime.ParseMediaType(own.Header.Get("Content-Type"))
	there = own.Status == http.StatusOK && kind != "text/html" && kind != "application/xhtml+xml"
	return there, ctx.Err() == nil && own.Status != 0 && own.Status < 500 && own.Status != http.StatusTooManyRequests
}

// there returns the cached result of a path, or calls ask. ask gets the previous result, which
// stays in use if ask fails.
func (n *ownNames) there(at string, ask func(was bool) (there, known bool)) bool {
	now := time.Now()
	n.mu.Lock()
	have := n.known[at]
	paused := now.Before(n.rest)
	n.mu.Unlock()
	if paused || now.Before(have.until) {
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

// first reports whether a kind of name was not logged yet, and marks the kind as logged.
func (n *ownNames) first(kind string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.logged[kind] {
		return false
	}
	if n.logged == nil {
		n.logged = make(map[string]bool)
	}
	n.logged[kind] = true
	return true
}
