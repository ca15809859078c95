package gateway

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
)

// page answers for the site's own resources; the path of r is relative to the
// base. Pages get the links by which their documents are discovered.
func (g *Gateway) page(w *response, r *http.Request) {
	ed := g.press.Current()
	origin := g.origin
	if origin == nil {
		origin = welcome{g}
	}
	if ed == nil || r.Method != http.MethodGet && r.Method != http.MethodHead || !mayBePage(r.URL.Path) {
		origin.ServeHTTP(w, r)
		return
	}
	at := g.homeOf(ed, r)
	if r.URL.Path == "/" && at.none {
		origin = welcome{g}
	}
	lw := &linked{to: w, head: r.Method == http.MethodHead, find: func() []millrace.Link { return g.links(ed, at, r) }}
	if lw.prepare(r) {
		// A range of a page that is served with links would be cut from other
		// bytes than the whole.
		r.Header.Del("Range")
		r.Header.Del("If-Range")
	}
	origin.ServeHTTP(lw, r)
	if err := lw.close(); err != nil {
		g.fail(w, r, fmt.Errorf("%w: %w", edition.ErrBroken, err))
	}
}

// mayBePage reports whether a path may name an HTML page: other files cost no
// lookup.
func mayBePage(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".css", ".js", ".mjs", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".woff", ".woff2", ".ttf",
		".json", ".xml", ".txt", ".pdf", ".zip", ".gz", ".mp4", ".webm", ".mp3", ".map", ".wasm":
		return false
	}
	return true
}

// links gives the links of one page, those of the site first.
func (g *Gateway) links(ed *edition.Edition, at *home, r *http.Request) []millrace.Link {
	identity := r.URL.EscapedPath()
	var out []millrace.Link
	if identity == at.path {
		for _, n := range ed.Notices {
			out = append(out, n.Root...)
		}
	}
	for _, n := range ed.Notices {
		if n.Page == nil {
			continue
		}
		links, err := pageLinks(r.Context(), n, identity, r.URL.RawQuery)
		if err != nil && r.Context().Err() == nil {
			// The page itself is worth more than its links.
			g.log.Error("links of a page", "page", identity, "err", err)
		}
		out = append(out, links...)
	}
	return out
}

// pageLinks asks for the page with the query, then without: a file is the same
// page under any query.
func pageLinks(ctx context.Context, n millrace.Notice, identity, query string) ([]millrace.Link, error) {
	if query != "" {
		links, err := n.Page(ctx, identity+"?"+query)
		if len(links) > 0 || err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return links, err
		}
	}
	links, err := n.Page(ctx, identity)
	if errors.Is(err, millrace.ErrNotFound) {
		return nil, nil
	}
	return links, err
}

// home says where a client of "/" ends up.
type home struct {
	ed   *edition.Edition
	path string // percent-encoded, after redirects
	none bool   // there is nothing
}

// homeOf follows "/" through the origin's own redirects, once per edition: the
// site's links belong on the final response (TCT draft-01, section 1.4.1).
func (g *Gateway) homeOf(ed *edition.Edition, r *http.Request) *home {
	if at := g.home.Load(); at != nil && at.ed == ed {
		return at
	}
	at := &home{ed: ed, path: "/"}
	base := &url.URL{Path: "/"}
	const most = 5
	for range most {
		if g.origin == nil {
			break
		}
		probe, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), http.MethodHead, base.String(), nil)
		if err != nil {
			break
		}
		probe.RemoteAddr = r.RemoteAddr
		answer := g.try(probe)
		at.none = at.path == "/" && (answer.status == http.StatusNotFound || answer.status == http.StatusForbidden)
		if answer.status < 300 || answer.status > 399 {
			break
		}
		next, err := base.Parse(answer.header.Get("Location"))
		if err != nil || next.Host != "" {
			break
		}
		inner := under(&http.Request{URL: next}, g.base)
		if inner == nil {
			break
		}
		base = inner.URL
		at.path = base.EscapedPath()
	}
	g.home.Store(at)
	return at
}

// try gives the origin's answer to a request of our own.
func (g *Gateway) try(r *http.Request) (answer *discard) {
	answer = &discard{header: make(http.Header)}
	defer func() {
		// Whoever asks for that page gets to see it, and the log too.
		_ = recover()
	}()
	g.origin.ServeHTTP(answer, r)
	return answer
}

// discard takes an answer of which only status and header count.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { d.WriteHeader(http.StatusOK); return len(b), nil }
func (d *discard) WriteHeader(status int) {
	if d.status == 0 && status >= 200 {
		d.status = status
	}
}

// linked adds links to an answer that is a page.
type linked struct {
	to    *response
	head  bool // the request is a HEAD
	find  func() []millrace.Link
	found bool // find was called
	links []millrace.Link
	mark  string // of the inserted elements, "" when there are none
	in    *injector
	wrote bool
}

// look finds the links, at most once.
func (lw *linked) look() {
	if lw.found {
		return
	}
	lw.found = true
	lw.links = lw.find()
	h := fnv.New32a()
	for _, l := range lw.links {
		if l.HTML {
			io.WriteString(h, l.String()+"\n")
			lw.mark = "~" + strconv.FormatUint(uint64(h.Sum32()), 36)
		}
	}
}

// prepare makes the conditions of a request those of the page without links:
// a validator that the client holds of the page with the links of today counts
// as the page's own, any other does not. It reports whether elements will be
// inserted if the answer is a page, as far as the request made it look.
func (lw *linked) prepare(r *http.Request) bool {
	held := r.Header["If-None-Match"]
	if held == nil && r.Header["Range"] == nil {
		return false
	}
	lw.look()
	if lw.mark == "" {
		return false
	}
	if held == nil {
		return true
	}
	var own []string
	for tag := range strings.SplitSeq(strings.Join(held, ","), ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" {
			own = append(own, tag)
		} else if opaque, ok := strings.CutSuffix(tag, lw.mark+`"`); ok {
			own = append(own, opaque+`"`)
		}
	}
	if own == nil {
		// With a validator, a date does not count (RFC 9110, section 13.1.3).
		own = []string{`"~"`}
	}
	r.Header["If-None-Match"] = []string{strings.Join(own, ", ")}
	return true
}

// Header gives the header of the answer.
func (lw *linked) Header() http.Header { return lw.to.Header() }

// WriteHeader adds the links.
func (lw *linked) WriteHeader(status int) {
	h := lw.to.Header()
	if status < 200 || lw.wrote {
		lw.to.WriteHeader(status)
		return
	}
	lw.wrote = true
	html := isHTML(h.Get("Content-Type"))
	if status == http.StatusOK && html || status == http.StatusNotModified {
		lw.look()
		for _, l := range lw.links {
			h.Add("Link", l.String())
		}
		if lw.mark != "" && h.Get("Content-Encoding") == "" {
			lw.change(h, status)
		}
	}
	lw.to.WriteHeader(status)
}

// change makes the header that of a page with inserted elements.
func (lw *linked) change(h http.Header, status int) {
	if tag := h.Get("Etag"); tag != "" {
		opaque := strings.TrimSuffix(strings.TrimPrefix(tag, "W/"), `"`)
		h.Set("Etag", "W/"+opaque+lw.mark+`"`)
	}
	for _, name := range []string{"Content-Length", "Accept-Ranges", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5"} {
		h.Del(name)
	}
	if status != http.StatusOK || lw.head {
		return
	}
	var b strings.Builder
	for _, l := range lw.links {
		if l.HTML {
			b.WriteString(element(l))
		}
	}
	lw.in = &injector{w: lw.to, insert: []byte(b.String())}
}

// element gives a link as HTML in ASCII, whatever the page's character set is.
// It reads the same in XHTML.
func element(l millrace.Link) string {
	var b strings.Builder
	b.WriteString(`<link rel="` + html.EscapeString(l.Rel) + `"`)
	if l.Type != "" {
		b.WriteString(` type="` + html.EscapeString(l.Type) + `"`)
	}
	b.WriteString(` href="`)
	for _, c := range html.EscapeString(l.URL) {
		if c < 0x80 {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, "&#%d;", c)
		}
	}
	b.WriteString("\"/>\n")
	return b.String()
}

// isHTML reports whether a media type is that of pages to insert into.
func isHTML(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "text/html" {
		return false
	}
	charset := strings.ToLower(params["charset"])
	return !strings.HasPrefix(charset, "utf-16") && !strings.HasPrefix(charset, "utf-32")
}

// Write passes the page on, with the elements in its head.
func (lw *linked) Write(b []byte) (int, error) {
	if !lw.wrote {
		if lw.Header().Get("Content-Type") == "" {
			lw.Header().Set("Content-Type", http.DetectContentType(b))
		}
		lw.WriteHeader(http.StatusOK)
	}
	if lw.in != nil {
		return lw.in.Write(b)
	}
	return lw.to.Write(b)
}

// ReadFrom passes files on the short way when nothing is inserted.
func (lw *linked) ReadFrom(r io.Reader) (int64, error) {
	if lw.wrote && lw.in == nil {
		return lw.to.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{lw}, r)
}

// Unwrap serves [http.ResponseController].
func (lw *linked) Unwrap() http.ResponseWriter { return lw.to }

func (lw *linked) close() error {
	if lw.in == nil {
		return nil
	}
	return lw.in.Close()
}
