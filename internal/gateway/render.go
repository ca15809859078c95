package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/commonmark"
	"github.com/millrace/millrace/internal/reply"
)

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
			p.g.log.Error("render page failed", "path", r.URL.Path, "err", err)
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
