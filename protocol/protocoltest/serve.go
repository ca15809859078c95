package protocoltest

import (
	"context"
	"errors"
	"html"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/protocol"
)

// Server serves one view in one protocol like the gateway: documents at their paths, the pages as
// HTML, and advertisements where the protocol needs them. The view can be replaced while the server
// runs.
type Server struct {
	protocol protocol.Protocol
	pub      millrace.Publisher

	mu        sync.RWMutex
	view      millrace.View
	large     map[string]*millrace.Document
	artifacts *ArtifactSet // artifacts of the view. If nil, the protocol has no artifacts.

	parts map[string]*parts // parts of large documents, by name

	// Now is the time of editions. If zero, it is the modification time of the newest page.
	Now time.Time

	Requests atomic.Int64 // number of requests
	Writes   atomic.Int64 // number of calls of Document.Write during requests
	quiet    atomic.Int64 // number of Writes whose output the response did not need
}

// Serve returns a server without a view. Nil options mean the zero value.
func Serve(p protocol.Protocol, o *protocol.PublisherOptions) *Server {
	return &Server{protocol: p, pub: p.NewPublisher(o)}
}

// Show sets the view to serve. It builds the large documents at once, like an edition.
func (s *Server) Show(ctx context.Context, v millrace.View) error {
	large := map[string]*millrace.Document{}
	for d, err := range s.pub.All(ctx, v) {
		if err != nil {
			return err
		}
		if !d.Large {
			break
		}
		if err := s.checkParts(ctx, v, d.Path, d.Parts); err != nil {
			return err
		}
		if d.PartsKeyed != nil {
			if err := s.checkParts(ctx, v, d.Path+" with a key", d.PartsKeyed); err != nil {
				return err
			}
		}
		b, err := built(ctx, d)
		if err != nil {
			return err
		}
		large[d.Path] = b
	}
	artifacts, err := s.files(ctx, v, large)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view, s.large, s.artifacts = v, large, artifacts
	return nil
}

// files builds the artifacts of a view, if the protocol has any.
func (s *Server) files(ctx context.Context, v millrace.View, large map[string]*millrace.Document) (*ArtifactSet, error) {
	filer, ok := s.pub.(millrace.ArtifactPublisher)
	if !ok {
		return nil, nil //nolint:nilnil // the protocol has no artifacts
	}
	now := s.Now
	if now.IsZero() {
		now = v.Site().Time
	}
	artifacts, err := fill(ctx, filer, v, now, s.artifacts)
	if err != nil {
		return nil, err
	}
	for _, d := range artifacts.Docs {
		large[d.Path] = d
	}
	for _, f := range artifacts.Files {
		large[f.Path] = artifacts.document(f)
	}
	return artifacts, nil
}

// ServeHTTP serves a document, or else a page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Requests.Add(1)
	s.mu.RLock()
	view, large := s.view, s.large
	s.mu.RUnlock()
	if err := s.serve(w, r, view, large); err != nil {
		s.refuse(w, r, err)
	}
}

// refuse writes an error, in the protocol's format if there is one.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := millrace.Status(err)
	if refuser, ok := s.pub.(millrace.ErrorRenderer); ok {
		if header, body, ok := refuser.RenderError(r, status, err); ok {
			maps.Copy(w.Header(), header)
			w.WriteHeader(status)
			_, _ = w.Write(body)
			return
		}
	}
	http.Error(w, http.StatusText(status), status)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, v millrace.View, large map[string]*millrace.Document) error {
	d := large[r.URL.RequestURI()]
	if d == nil {
		var err error
		d, err = s.pub.Find(r.Context(), v, r)
		if _, refused := errors.AsType[*millrace.RequestError](err); !refused && errors.Is(err, millrace.ErrNotFound) {
			return s.page(w, r, v)
		}
		if err != nil {
			return err
		}
	}
	counted := *d
	status := &statusWriter{ResponseWriter: w}
	var writes int64
	counted.Write = func(ctx context.Context, w io.Writer) error {
		writes++
		return d.Write(ctx, w)
	}
	err := edition.Respond(status, r, &counted)
	s.Writes.Add(writes)
	if r.Method == http.MethodHead && !d.DigestETag || status.code == http.StatusNotModified {
		s.quiet.Add(writes)
	}
	return err
}

// sitemap serves a sitemap of the pages that the protocol carries, like the gateway if no protocol
// has its own sitemap. It lists only pages of the site, and its ETag is a hash of the bytes.
func (s *Server) sitemap(w http.ResponseWriter, r *http.Request, v millrace.View) error {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for p, err := range v.Scan(r.Context(), millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return err
		}
		if s.protocol.Carry(v.Site(), p) != nil && strings.HasPrefix(p.URL, v.Site().Base) {
			b.WriteString("<url><loc>" + html.EscapeString(p.URL) + "</loc><lastmod>" + p.Modified.UTC().Format(time.RFC3339) + "</lastmod></url>\n")
		}
	}
	b.WriteString("</urlset>\n")
	return edition.Respond(w, r, &millrace.Document{
		Path: "/sitemap.xml", ETag: canon.SHA256Hex([]byte(b.String())),
		Header: http.Header{"Content-Type": {"application/xml; charset=utf-8"}, "Cache-Control": {"max-age=0, must-revalidate"}},
		Write: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, b.String())
			return err
		},
	})
}

// page serves a page as HTML with the protocol's advertisement, or robots.txt, or a sitemap. The
// root is served even if it is not a page.
func (s *Server) page(w http.ResponseWriter, r *http.Request, v millrace.View) error {
	base := v.Site().Base
	pagePath := canon.Relative(base, canon.Absolute(base, r.URL.RequestURI()))
	notice := s.pub.Advertise(v)
	if pagePath == "/robots.txt" && len(notice.Robots) > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, err := io.WriteString(w, strings.Join(notice.Robots, "\n")+"\n")
		return err
	}
	if pagePath == "/sitemap.xml" {
		return s.sitemap(w, r, v)
	}
	p, err := v.Page(r.Context(), millrace.Ref{URL: pagePath})
	if err != nil && (pagePath != "/" || !errors.Is(err, millrace.ErrNotFound)) {
		return err
	}
	var links []millrace.Link
	if notice.Page != nil {
		if links, err = notice.Page(r.Context(), pagePath); err != nil {
			return err
		}
	}
	var head strings.Builder
	for _, l := range links {
		if !l.NoField {
			w.Header().Add("Link", l.String())
		}
		if l.Vary != "" {
			w.Header().Add("Vary", l.Vary)
		}
		if l.HTML {
			head.WriteString(`<link rel="` + l.Rel + `" type="` + l.Type + `" href="` + html.EscapeString(l.URL) + "\">\n")
		}
	}
	if pagePath == "/" {
		for _, l := range notice.Root {
			w.Header().Add("Link", l.String())
		}
		for _, data := range notice.RootData {
			head.WriteString(`<script type="application/ld+json">` + strings.ReplaceAll(string(data), "<", `\u003c`) + "</script>\n")
		}
	}
	title, text := "", ""
	if p != nil {
		title, text = p.Title, p.Text()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err = io.WriteString(w, "<!DOCTYPE html>\n<html><head><title>"+html.EscapeString(title)+"</title>\n"+head.String()+
		"</head><body><pre>"+html.EscapeString(text)+"</pre></body></html>\n")
	return err
}

// statusWriter records the status of the response.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}
