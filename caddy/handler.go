package caddy

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/publish"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler publishes a site in every protocol of millrace. It responds to requests for machine
// documents, and for pages in Markdown. The next handlers serve the pages, and this handler
// inserts links to the documents into the pages.
type Handler struct {
	// Source is the folder with the HTML pages of the site, or "site" to read the pages through
	// the routes of the site. If empty, it is the root folder of the site if that has a file
	// index.html, otherwise "site".
	Source string `json:"source,omitempty"`
	// BaseURL is the public URL of the site. If empty, it is the URL of the route's first host.
	BaseURL string `json:"base_url,omitempty"`
	// Store is the file of the store. If empty, it is a file in Caddy's data folder. "memory:"
	// stores nothing on disk.
	Store string `json:"store,omitempty"`
	// Title is the title of the site. If empty, it is the title of the home page.
	Title string `json:"title,omitempty"`
	// Contact is a published URL or e-mail address for operators of bots.
	Contact string `json:"contact,omitempty"`
	// Also lists more protocols in which the site is published, such as "tct-03".
	Also []string `json:"also,omitempty"`
	// Exclude lists paths that no document contains, with all paths below them.
	Exclude []string `json:"exclude,omitempty"`
	// Policy is the usage policy. Bots whose purpose it refuses get 403.
	Policy *Policy `json:"policy,omitempty"`

	place   *place
	site    *site         // set before started is closed; nil = the configuration was not started
	started chan struct{} // closed by the app
}

// Policy is the permitted use of the content.
type Policy struct {
	// Purposes maps ai-input, ai-train and search to whether the content may be used for them.
	Purposes map[millrace.Purpose]bool `json:"purposes,omitempty"`
	// Terms is the URL of the terms of use.
	Terms string `json:"terms,omitempty"`
	// Payment is the URL of the prices. With it, refused bots get 402.
	Payment string `json:"payment,omitempty"`
	// Contact is the URL of the contact for licenses. It may be a mailto: URL.
	Contact string `json:"contact,omitempty"`
	// Attribution requires that users credit the site.
	Attribution bool `json:"attribution,omitempty"`
}

func (p *Policy) policy() *millrace.Policy {
	if p == nil {
		return nil
	}
	return &millrace.Policy{
		Purposes: p.Purposes, Terms: p.Terms, Payment: p.Payment, Contact: p.Contact,
		Requirements: millrace.Requirements{Attribution: p.Attribution},
	}
}

// CaddyModule implements [caddy.Module].
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.millrace", New: func() caddy.Module { return new(Handler) }}
}

// fromSite is the Source that reads the routes of the site.
const fromSite = "site"

// Provision registers the handler with the app, which starts the publication.
func (h *Handler) Provision(ctx caddy.Context) error {
	replace := caddy.NewReplacer()
	for _, s := range []*string{&h.Source, &h.BaseURL, &h.Store} {
		*s = replace.ReplaceAll(*s, "")
	}
	if err := h.validate(); err != nil {
		return err
	}
	app, err := ctx.App(appID)
	if err != nil {
		return err
	}
	h.started = make(chan struct{})
	app.(*App).handlers = append(app.(*App).handlers, h)
	return nil
}

// validate rejects invalid values.
func (h *Handler) validate() error {
	if err := checkSource(h.Source); err != nil {
		return err
	}
	if err := checkBase(h.BaseURL); err != nil {
		return err
	}
	for _, name := range h.Also {
		if err := checkAlso(name); err != nil {
			return err
		}
	}
	if p := h.Policy.policy(); p != nil {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
	}
	return nil
}

func checkSource(source string) error {
	if source == "" || source == fromSite || strings.Contains(source, "{") {
		return nil
	}
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		return fmt.Errorf("source %s: %w", source, cmp.Or(err, errors.New("not a folder")))
	}
	return nil
}

func checkBase(base string) error {
	if base == "" || strings.Contains(base, "{") {
		return nil
	}
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return fmt.Errorf("base_url %s: not the URL of a site, such as https://example.com/", base)
	}
	return nil
}

func checkAlso(name string) error {
	var known []string
	for _, p := range all.Protocols() {
		if p.Name == name {
			return nil
		}
		known = append(known, p.Name)
	}
	return fmt.Errorf("also %s: unknown protocol; the protocols are %s", name, strings.Join(known, ", "))
}

// print returns the configuration as text, so that two configurations can be compared.
func (h *Handler) print() string {
	b, err := json.Marshal(h)
	if err != nil {
		panic("millrace: cannot encode the configuration: " + err.Error())
	}
	return string(b)
}

// options returns the options of the publication.
func (h *Handler) options() *publish.Options {
	o := &publish.Options{BaseURL: h.site.base, Title: h.Title, Contact: h.Contact, Also: h.Also, Policy: h.Policy.policy()}
	if h.Exclude != nil {
		o.Visibility.Exclude = slices.Concat(h.Exclude, millrace.DefaultExclude)
	}
	return o
}

// call is one request of a client.
type call struct {
	next   caddyhttp.Handler
	w      http.ResponseWriter
	r      *http.Request // the request for the next handlers
	passed bool          // the next handlers handle the request
	err    error         // error of the next handlers
}

type (
	callKey struct{} // a *call
	ownKey  struct{} // set in requests of millrace itself: a *string that receives the root of the site, or nil
)

// ServeHTTP implements [caddyhttp.MiddlewareHandler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	ctx := r.Context()
	if root, own := ctx.Value(ownKey{}).(*string); own {
		caddyhttp.SetVar(ctx, caddyhttp.LogSkipVar, true)
		if root != nil {
			*root = ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer).ReplaceAll("{http.vars.root}", "")
			return nil
		}
		return next.ServeHTTP(w, r)
	}
	select { // the app may start after the servers
	case <-h.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	var server *publish.Server
	if h.site != nil {
		server = h.site.server.Load()
	}
	if server == nil { // the site has not been read yet
		return next.ServeHTTP(w, r)
	}
	c := &call{next: next, r: r}
	c.w = &responseWriter{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, call: c}
	q := r.WithContext(context.WithValue(ctx, callKey{}, c))
	// Use the paths that clients request, because try_files may have changed them.
	if original, ok := ctx.Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		q.URL, q.RequestURI, q.Method = original.URL, original.RequestURI, original.Method
	}
	if ip, ok := caddyhttp.GetVar(ctx, caddyhttp.ClientIPVarKey).(string); ok && ip != "" {
		q.RemoteAddr = net.JoinHostPort(ip, "0")
	}
	server.ServeHTTP(c.w, q)
	return c.err
}

// responseWriter prevents other handlers, such as encode, from changing the machine documents,
// whose validators depend on their bytes.
type responseWriter struct {
	*caddyhttp.ResponseWriterWrapper
	call *call
}

// WriteHeader implements [http.ResponseWriter].
func (w *responseWriter) WriteHeader(status int) {
	if !w.call.passed && (status < 300 || status == http.StatusNotModified) {
		h := w.Header()
		h["Cache-Control"] = []string{strings.TrimPrefix(strings.Join(append(h["Cache-Control"], "no-transform"), ", "), ", ")}
	}
	w.ResponseWriterWrapper.WriteHeader(status)
}

// contains reports whether writing to outer writes to the client's response.
func (c *call) contains(outer http.ResponseWriter) bool {
	for outer != c.w {
		u, ok := outer.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		outer = u.Unwrap()
	}
	return true
}

// pass lets the next handlers handle a request of a client. Requests of millrace itself go through
// all routes of the site.
func (s *site) pass(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(callKey{}).(*call)
	if c == nil || !c.contains(w) {
		s.visit(w, r)
		return
	}
	c.passed = true
	to := r.WithContext(r.Context())
	to.URL, to.RequestURI, to.RemoteAddr, to.Method = c.r.URL, c.r.RequestURI, c.r.RemoteAddr, c.r.Method
	c.err = c.next.ServeHTTP(w, to)
}

// visitorAddress is the client address of millrace's own requests. It is an address for documentation
// (RFC 5737), because sites may trust private addresses.
const visitorAddress = "192.0.2.1:1024"

// visit sends a request of millrace through all routes of the site.
func (s *site) visit(w http.ResponseWriter, r *http.Request) {
	h := s.newest()
	if h == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	h.place.ask(w, r, nil)
}

// ask sends a request to the server of the position, as a visitor without credentials.
func (p *place) ask(w http.ResponseWriter, r *http.Request, root *string) {
	to := r.Clone(context.WithValue(r.Context(), ownKey{}, root))
	to.Host, to.RequestURI = p.host, to.URL.RequestURI()
	if to.RemoteAddr = visitorAddress; p.scheme == "https" {
		to.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: p.name}
	}
	p.server.ServeHTTP(w, to)
}
