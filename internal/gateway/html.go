package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/commonmark"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/reply"
)

// welcome serves "/" of a site without a home page. It returns a page with the name of the site and
// links to its documents. For other paths, the response is 404. Before the first edition, it is
// 503 for all paths.
type welcome struct {
	g  *Gateway
	ed *edition.Edition // may be nil
}

var welcomePage = template.Must(template.New("welcome").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{{.Site.Title}}</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 42rem; margin: 12vh auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin-bottom: .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin-top: 2.5rem; }
p.of { opacity: .7; margin-top: 0; overflow-wrap: anywhere; }
ul { list-style: none; padding: 0; border-top: 1px solid #8885; }
li { padding: .5rem 0; border-bottom: 1px solid #8885; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>{{.Site.Title}}</h1>
<p class="of"><a href="{{.Site.Base}}">{{.Site.Base}}</a></p>
<p>{{.Site.Pages}} {{if eq .Site.Pages 1}}page{{else}}pages{{end}} of this site, for machines to read. Version {{.Site.Seq}}, {{.When}}.</p>
<h2>Documents</h2>
<ul>
{{range .Documents}}<li><a href="{{.}}">{{.}}</a></li>
{{else}}<li>No documents are published.</li>
{{end}}</ul>
</body>
</html>
`))

func (g *Gateway) welcome(ed *edition.Edition) http.Handler { return welcome{g, ed} }

// ServeHTTP serves the page.
func (p welcome) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ed := p.ed
	switch {
	case ed == nil:
		w.Header().Set("Retry-After", "5")
		reply.Error(w, r, http.StatusServiceUnavailable, &errEarly.Err)
		return
	case r.URL.Path != "/":
		reply.NotFound(w, r)
		return
	case reply.OnlyReads(w, r):
		return
	}
	data := struct {
		Site      millrace.Site
		When      string
		Documents []string
	}{Site: ed.View.Site(), Documents: ed.Large()}
	data.When = data.Site.Time.UTC().Format("2 January 2006, 15:04 UTC")
	for i, d := range data.Documents {
		data.Documents[i] = p.g.endpointBase + d
	}
	here := strings.TrimSuffix(cmp.Or(p.g.o.EndpointBase, p.g.o.Base), "/")
	for _, n := range ed.Advertisements { // entry points of the protocols
		for _, l := range n.Root {
			at := l.URL
			if path, ok := strings.CutPrefix(at, here+"/"); ok {
				at = p.g.endpointBase + "/" + path
			}
			data.Documents = append(data.Documents, at)
		}
	}
	slices.Sort(data.Documents)
	data.Documents = slices.Compact(data.Documents)
	var b bytes.Buffer
	if err := welcomePage.Execute(&b, data); err != nil {
		p.g.log.Error("could not render welcome page", "err", err)
		reply.Error(w, r, http.StatusInternalServerError, nil)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("Etag", `"`+canon.SHA256Hex(b.Bytes())[:32]+`"`)
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	http.ServeContent(w, r, "", data.Site.Time, bytes.NewReader(b.Bytes()))
}

// rendered serves the pages of a site that has only text as HTML for people.
type rendered struct{ g *Gateway }

var renderedPage = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html{{with .Language}} lang="{{.}}"{{end}}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Page.Title}}{{if and .Page.Title .Site.Title (ne .Page.Title .Site.Title)}} | {{end}}{{if ne .Page.Title .Site.Title}}{{.Site.Title}}{{end}}</title>
{{with .Page.Description}}<meta name="description" content="{{.}}">
{{end}}{{if .Page.Access.NoIndex}}<meta name="robots" content="noindex">
{{end}}<link rel="canonical" href="{{.Page.URL}}">
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1.5rem; overflow-wrap: anywhere; }
pre, table { overflow-x: auto; display: block; }
img { max-width: 100%; }
th, td { border: 1px solid #8885; padding: .25rem .5rem; }
</style>
</head>
<body>
<nav><a href="{{.Site.Base}}">{{.Site.Title}}</a></nav>
<main>
{{with .Page.Title}}<h1>{{.}}</h1>
{{end}}{{.HTML}}</main>
</body>
</html>
`))

// ServeHTTP serves a page. If the page exists only with or only without a trailing slash, ServeHTTP
// redirects to that URL.
func (p rendered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ed := p.g.server.Current()
	if ed == nil {
		reply.NotFound(w, r)
		return
	}
	if reply.OnlyReads(w, r) {
		return
	}
	site, at := ed.View.Site(), r.URL.EscapedPath()
	page, err := ed.View.Page(r.Context(), millrace.Ref{URL: canon.Absolute(site.Base, at)})
	if errors.Is(err, millrace.ErrNotFound) {
		other := at + "/"
		if strings.HasSuffix(at, "/") {
			other = strings.TrimSuffix(at, "/")
		}
		if at == "/" {
			other = site.Home
		}
		if _, err := ed.View.Page(r.Context(), millrace.Ref{URL: canon.Absolute(site.Base, other)}); err == nil && other != "" {
			reply.Redirect(w, r, p.g.base+"/"+strings.TrimLeft(other, "/"))
			return
		}
		reply.NotFound(w, r)
		return
	}
	data := struct {
		Site     millrace.Site
		Page     *millrace.Page
		Language string
		HTML     template.HTML
	}{Site: site, Page: page}
	var b bytes.Buffer
	if err == nil {
		var text []byte
		text, err = commonmark.HTML([]byte(millrace.Markdown(page.Blocks)))
		data.HTML, data.Language = template.HTML(text), cmp.Or(page.Language, site.Language) //nolint:gosec // the renderer drops raw HTML
	}
	if err == nil {
		err = renderedPage.Execute(&b, data)
	}
	if err != nil {
		if r.Context().Err() == nil {
			p.g.log.Error("could not render page", "path", r.URL.Path, "err", err)
			reply.Error(w, r, millrace.Status(err), nil)
		}
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("Etag", `"`+canon.SHA256Hex(b.Bytes())[:32]+`"`)
	http.ServeContent(w, r, "", page.Modified, bytes.NewReader(b.Bytes()))
}
