package openfeeder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// PublisherOptions are the options specific to OpenFeeder. The zero value is ready to use.
type PublisherOptions struct {
	Embeddings bool // whether searches use embedding vectors
}

// publisher serves these documents below the endpoint base:
//
//	/.well-known/openfeeder.json  discovery (2)
//	/openfeeder                   index (3.3), with page and limit
//	/openfeeder?url=              a page in chunks (3.2), with page and limit
//	/openfeeder?q=                passages for a question (3.1), with url, min_score, page and limit
//	/openfeeder?since=&until=     changes (3.4)
//	/openfeeder/events            stream of changes
//	/openfeeder/update            changes that the site reports
//
// A static feed has these files instead, because a static host ignores queries:
//
//	/openfeeder.json              index; /openfeeder-2.json … if it is long
//	/openfeeder/pages/PATH.json   a page with all its chunks
type publisher struct {
	o      protocol.PublisherOptions
	own    PublisherOptions
	most   int // maximum number of changes on a page of a sync reply, without the rest of the last commit
	orders orders
	items  itemCache
	views  views
	events events
}

var (
	_ millrace.ErrorRenderer = (*publisher)(nil)
	_ millrace.Handler       = (*publisher)(nil)
)

// NewPublisher returns the protocol's publisher. Nil options mean the zero value.
func NewPublisher(o *protocol.PublisherOptions) millrace.Publisher {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	return &publisher{o: *o, own: *protocol.Own[PublisherOptions](o), most: syncItems}
}

// Find returns the requested document. If the request is invalid, the error is a
// [millrace.RequestError].
func (p *publisher) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	path := r.URL.EscapedPath()
	switch {
	case path == discovery:
		return p.discovery(ctx, v)
	case p.o.Static:
		return p.findStatic(ctx, v, path)
	case path == endpoint:
	default:
		return nil, fmt.Errorf("%s: %s: %w", Name, kit.Short(path), millrace.ErrNotFound)
	}
	q, err := parseQuery(v.Site(), r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	switch q.mode {
	case searchMode:
		return p.search(ctx, v, q)
	case syncMode:
		return p.sync(ctx, v, q)
	case pageMode:
		return p.page(ctx, v, q)
	default:
		return p.index(v, q), nil
	}
}

// All yields the documents that need no query parameters: discovery, the index with default
// parameters, and the first chunks of every page.
func (p *publisher) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	if p.o.Static {
		return p.allStatic(ctx, v)
	}
	return func(yield func(*millrace.Document, error) bool) {
		d, err := p.discovery(ctx, v)
		if err != nil {
			yield(nil, err)
			return
		}
		if !yield(d, nil) {
			return
		}
		q := query{limit: defaultLimit, page: 1}
		for ; q.page <= pagesOf(v.Site().Tagged[Name], q.limit); q.page++ {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(p.index(v, q), nil) {
				return
			}
		}
		for t, err := range v.Tags(ctx, Name, "") {
			if err != nil {
				yield(nil, fmt.Errorf("%s: all documents: %w", Name, err))
				return
			}
			if !yield(p.pageDocument(v, t, query{mode: pageMode, url: t.URL, limit: defaultLimit, page: 1}), nil) {
				return
			}
		}
	}
}

// page returns the document of the page in a query.
func (p *publisher) page(ctx context.Context, v millrace.View, q query) (*millrace.Document, error) {
	t, err := p.lookUp(ctx, v, q.url)
	if err != nil {
		return nil, err
	}
	q.url = t.URL
	return p.pageDocument(v, t, q), nil
}

// lookUp returns the tag of the page with the URL u, or with a URL that differs from u only by a
// trailing slash.
func (p *publisher) lookUp(ctx context.Context, v millrace.View, u string) (millrace.Tag, error) {
	path, rest := u, ""
	if i := strings.IndexByte(u, '?'); i >= 0 {
		path, rest = u[:i], u[i:]
	}
	other := path + "/" + rest
	if cut, ok := strings.CutSuffix(path, "/"); ok {
		other = cut + rest
	}
	for _, try := range []string{u, other} {
		t, err := v.Tag(ctx, Name, try)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, millrace.ErrNotFound) {
			return t, fmt.Errorf("%s: page %s: %w", Name, kit.Short(u), err)
		}
	}
	return millrace.Tag{}, &millrace.RequestError{
		Status: http.StatusNotFound, Code: notFound, Text: "The site has no page " + kit.Short(relative(v.Site().Base, u)) + ".",
		Page: canon.Relative(v.Site().Base, u),
	}
}

// pageDocument returns the document for a tag. It does not read the page.
func (p *publisher) pageDocument(v millrace.View, t millrace.Tag, q query) *millrace.Document {
	site := v.Site()
	d := p.document(q.path(site), etag("page", t.Value, kit.FormatTime(t.Modified), site.Base, site.Language, fmt.Sprint(q.page, q.limit)))
	d.Page, d.Continuation = canon.Relative(site.Base, t.URL), q.page > 1
	d.Header["Link"] = []string{millrace.Link{URL: t.URL, Rel: "canonical"}.String()}
	modified(d.Header, t.Modified)
	d.Write = func(ctx context.Context, w io.Writer) error {
		found, err := v.Page(ctx, millrace.Ref{URL: t.URL})
		if err != nil {
			return fmt.Errorf("%s: page %s: %w", Name, t.URL, err)
		}
		doc := documentOf(site, found)
		if doc == nil {
			return fmt.Errorf("%s: page %s: the page no longer has a document", Name, t.URL)
		}
		_, err = w.Write(doc.cut(q.page, q.limit).encode())
		return err
	}
	return d
}

// document returns a document with the fields that are common to all documents.
func (p *publisher) document(path, tag string) *millrace.Document {
	cache := "public, max-age=0, must-revalidate"
	if p.o.Auth {
		cache = "max-age=0, must-revalidate"
	}
	return &millrace.Document{
		Path:       path,
		ETag:       tag,
		CacheField: cacheHead,
		Header: http.Header{
			"Content-Type":  {contentType},
			"Cache-Control": {cache},
			versionHead:     {version},
		},
	}
}

func modified(h http.Header, t time.Time) {
	if !t.IsZero() {
		h["Last-Modified"] = []string{t.UTC().Format(http.TimeFormat)}
	}
}

// format is incremented whenever documents get different bytes for the same page and site.
const format = "2"

// etag returns an ETag computed from all inputs of a document.
func etag(parts ...string) string {
	b := []byte(format)
	for _, part := range parts {
		b = append(strconv.AppendInt(append(b, '\n'), int64(len(part)), 10), ' ')
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// edition returns the part of an ETag that changes with the view.
func edition(site millrace.Site) string { return string(site.At(site.Seq)) }

// path returns the path of a document on its host.
func path(site millrace.Site, name string) string {
	u, err := url.Parse(site.EndpointBase)
	if err != nil {
		return name
	}
	return strings.TrimSuffix(u.EscapedPath(), "/") + name
}

// refuse returns an error with a text for the client.
func refuse(status int, code, text string) error {
	return &millrace.RequestError{Status: status, Code: code, Text: text}
}

// RenderError returns a body in the form of section 8 for every path of the protocol.
func (p *publisher) RenderError(r *http.Request, status int, err error) (http.Header, []byte, bool) {
	name := r.URL.EscapedPath()
	if name != discovery && name != endpoint && !strings.HasPrefix(name, endpoint+"/") && !p.static(name) {
		return nil, nil, false
	}
	f := failure{Code: codeOf(status), Message: messageOf(r, status)}
	if e, ok := errors.AsType[*millrace.RequestError](err); ok {
		f = failure{cmp.Or(e.Code, f.Code), cmp.Or(e.Text, f.Message)}
	}
	return http.Header{
		"Content-Type":  {contentType},
		"Cache-Control": {"no-store"},
		versionHead:     {version},
		cacheHead:       {"MISS"}, // errors are not cached
	}, f.encode(), true
}

func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return authRequired
	case http.StatusNotFound:
		return notFound
	case http.StatusGone:
		return resyncRequired
	case http.StatusTooManyRequests:
		return rateLimited
	}
	if status >= 500 {
		return serverError
	}
	return invalidParam
}

func messageOf(r *http.Request, status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "Missing key: send it as Authorization: Bearer KEY."
	case http.StatusForbidden:
		return "The key does not allow this request."
	case http.StatusNotFound:
		return "Not found: " + kit.Short(r.URL.EscapedPath()) + "."
	case http.StatusMethodNotAllowed:
		return "The method " + kit.Short(r.Method) + " is not allowed; see the Allow field."
	case http.StatusGone:
		return "The log does not reach back that far: read the index and continue from its sync_token."
	case http.StatusRequestEntityTooLarge:
		return "The body is too large."
	case http.StatusTooManyRequests:
		return "Too many requests: retry after the number of seconds in the Retry-After field."
	case http.StatusServiceUnavailable:
		return "The site is temporarily unavailable: try again later."
	}
	if status >= 500 {
		return "Internal server error."
	}
	return "Request refused: " + strings.ToLower(http.StatusText(status)) + "."
}

// absolute returns the absolute URL of an identity, or of a URL of the site.
func absolute(site millrace.Site, u string) string { return canon.Absolute(site.Base, u) }
