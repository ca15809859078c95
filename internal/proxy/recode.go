package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/millrace/millrace"
)

// recoding is a page of the site's server that gets elements.
//
// A short page is read completely before it is sent. If it arrived compressed, the result is
// cached. Other pages stream: each piece is decoded and compressed again.
//
// If a page must not be cached and the server is near (plain HTTP), the next request for it
// asks for no compression. Decoding costs more than reading more bytes.
type recoding struct {
	p         *Pages
	adds      *additions
	name      string // name of the page in the response cache
	keep      bool   // the request allows storing the response
	state     string // state in the response cache
	cached    []byte
	plain     bool // the page is requested uncompressed, and compressed here
	zip       bool // the server has sent the page compressed
	coded     bool // the client gets the page compressed
	completed bool // the body is complete, in the client's coding
	out       *gzip.Writer
}

// RecodingBytes returns the memory in bytes of the pages being recoded.
func (p *Pages) RecodingBytes() int64 { return p.recodings.inUse.Load() }

// plainState is the cached state of a page that must be requested uncompressed. It differs from
// every validator, because each validator ends with a space or a sum.
const plainState = "identity"

// recodings limits the memory of recoded pages. Above the limit, pages are requested
// uncompressed, or stream.
type recodings struct {
	open    atomic.Int64 // pages that may arrive compressed
	inUse   atomic.Int64 // bytes of completed pages
	writers sync.Pool    // encoders for pages that are not cached
	best    sync.Pool    // encoders for cached pages
	readers sync.Pool
	buffers sync.Pool
}

const (
	maxRecodings = 32
	maxEncoded   = 1 << 20  // maximum compressed bytes of a page that is read completely
	maxDecoded   = 8 << 20  // maximum uncompressed bytes of such a page
	maxInUse     = 64 << 20 // maximum bytes of all such pages
	cachedLevel  = 6        // gzip level of cached pages
)

type recodingKey struct{}

// recode changes full, the request for the server, so that the page arrives in a form that can get
// elements. full shares its header with r. Call done afterwards.
func (p *Pages) recode(lw *linked, r, full *http.Request) (_ *http.Request, done func()) {
	done = func() {}
	if lw.load().mark == "" {
		return full, done
	}
	if p.front.handler != nil { // the handler around this server may compress the page
		delete(r.Header, "Accept-Encoding")
		lw.join = true
		return full, done
	}
	a := &recoding{p: p, adds: lw.adds, name: full.Host + full.URL.RequestURI(), keep: r.Header["Authorization"] == nil}
	if accepted := r.Header["Accept-Encoding"]; accepted != nil {
		r.Header["Accept-Encoding"] = uncoded
		if acceptsGzip(accepted) {
			done = func() { p.recodings.open.Add(-1) }
			if p.recodings.open.Add(1) <= maxRecodings {
				if a.keep {
					a.state, a.cached = p.server.CachedBody(a.name, a.adds.mark)
				}
				if a.plain = a.state == plainState; !a.plain {
					r.Header["Accept-Encoding"] = gzipped
				}
			}
		}
	}
	lw.again = a
	return full.WithContext(context.WithValue(full.Context(), recodingKey{}, a)), done
}

var (
	uncoded = []string{"identity"}
	gzipped = []string{"gzip"}
)

// acceptsGzip reports whether a client accepts gzip (RFC 9110, section 12.5.3).
func acceptsGzip(fields []string) bool {
	any := false
	for _, f := range fields {
		for part := range strings.SplitSeq(f, ",") {
			name, params, _ := strings.Cut(part, ";")
			q, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q=")
			good := !ok || strings.Trim(q, "0.") != ""
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "gzip", "x-gzip":
				return good
			case "*":
				any = good
			}
		}
	}
	return any
}

// insert inserts elements into a page of the server, or decodes a page that
// streams.
func insert(resp *http.Response) {
	a, _ := resp.Request.Context().Value(recodingKey{}).(*recoding)
	if a == nil || resp.StatusCode != http.StatusOK {
		return
	}
	h := resp.Header
	coding := strings.ToLower(h.Get("Content-Encoding"))
	a.zip = coding == "gzip" || coding == "x-gzip"
	page := (a.zip || coding == "") && IsHTML(h.Get("Content-Type")) && mayTransform(h)
	a.coded = page && (a.zip || a.plain)
	if plain := a.coded && !storable(h) && a.p.front.target.Scheme == "http"; a.keep && a.cached == nil && plain != a.plain {
		state := ""
		if plain {
			state = plainState
		}
		a.p.server.CacheBody(a.name, a.adds.mark, state, nil)
	}
	if !page {
		return
	}
	if a.zip {
		delete(h, "Content-Encoding")
	}
	switch {
	case resp.Request.Method == http.MethodHead:
	case a.complete(resp):
		a.completed = true
	case a.zip:
		delete(h, "Content-Length")
		resp.Body = &decoded{from: resp.Body, all: &a.p.recodings}
	}
}

// complete reads a page to its end and adds the elements, if the length is known, or if the
// previous response had the same validator. Otherwise, or if the page is too long, it returns
// false, and the body still yields the original bytes.
func (a *recoding) complete(resp *http.Response) bool {
	all, h, from := &a.p.recodings, resp.Header, resp.Body
	keep := a.zip && a.keep && storable(h)
	validator := h.Get("Etag") + h.Get("Last-Modified") + " "
	size := resp.ContentLength
	if size < 0 {
		if !keep || validator == " " {
			return false
		}
		if !strings.HasPrefix(a.state, validator) {
			a.p.server.CacheBody(a.name, a.adds.mark, validator, nil)
			return false
		}
		size = maxEncoded
	}
	reserved := 2 * size
	if all.inUse.Add(reserved) > maxInUse || size > maxEncoded {
		all.inUse.Add(-reserved)
		return false
	}
	in, out := all.buffer(), all.buffer()
	resp.Body = &buffered{out, from, func() { all.inUse.Add(-reserved); all.free(in); all.free(out) }}
	_, err := in.ReadFrom(io.LimitReader(from, maxEncoded+1))
	if err != nil || in.Len() > maxEncoded { // stream the page, with the rest or the error
		resp.Body.(*buffered).Reader = io.MultiReader(in, failing{err}, from)
		return false
	}
	if keep {
		validator += a.p.recodings.sum(in.Bytes())
	}
	if a.cached != nil && a.state == validator {
		out.Write(a.cached)
	} else if err := a.make(out, in.Bytes(), keep); err != nil {
		resp.Body.(*buffered).Reader = in
		return false
	} else if keep {
		a.p.server.CacheBody(a.name, a.adds.mark, validator, bytes.Clone(out.Bytes()))
	}
	resp.ContentLength = int64(out.Len())
	h["Content-Length"] = []string{strconv.Itoa(out.Len())}
	return true
}

// storable reports whether a shared cache may store a response (RFC 9111, section 3). The
// response must depend only on the URL and the coding.
func storable(h http.Header) bool {
	if h["Set-Cookie"] != nil {
		return false
	}
	control := strings.ToLower(strings.Join(h["Cache-Control"], ","))
	if strings.Contains(control, "no-store") || strings.Contains(control, "private") {
		return false
	}
	for _, value := range h["Vary"] {
		for field := range strings.SplitSeq(value, ",") {
			switch strings.ToLower(strings.TrimSpace(field)) {
			case "", "accept-encoding", "accept":
			default:
				return false
			}
		}
	}
	return true
}

// make writes a page with its elements, in the client's coding.
func (a *recoding) make(out *bytes.Buffer, page []byte, best bool) error {
	all := &a.p.recodings
	in := &injector{w: out, insert: a.adds.elements}
	if !a.coded {
		_, _ = in.Write(page) // a write to a buffer never fails
		return in.Close()
	}
	z := all.writer(best)
	z.Reset(out)
	in.w = z
	var err error
	if a.zip {
		var n int64
		from := &decoded{from: io.NopCloser(bytes.NewReader(page)), all: all}
		if n, err = io.Copy(in, io.LimitReader(from, maxDecoded+1)); n > maxDecoded {
			err = millrace.ErrTooLarge
		}
		err = errors.Join(err, from.Close())
	} else {
		_, err = in.Write(page)
	}
	if err = errors.Join(err, in.Close(), z.Close()); err != nil {
		out.Reset()
	}
	all.put(z, best)
	return err
}

// buffered is the body of a page in memory.
type buffered struct {
	io.Reader
	from  io.Closer
	leave func() // releases the memory; nil after Close
}

// Close frees the memory.
func (b *buffered) Close() error {
	if b.leave != nil {
		b.Reader = failing{http.ErrBodyReadAfterClose}
		b.leave()
		b.leave = nil
	}
	return b.from.Close()
}

// failing is a reader that returns err, or EOF if err is nil.
type failing struct{ err error }

// Read returns the error.
func (f failing) Read([]byte) (int, error) { return 0, cmp.Or(f.err, io.EOF) }

// seeds make the sums unpredictable for clients.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// sum returns a hash of a page, for use within this process.
func (*recodings) sum(page []byte) string {
	return strconv.FormatUint(maphash.Bytes(seeds[0], page), 36) + "-" + strconv.FormatUint(maphash.Bytes(seeds[1], page), 36) + "-" + strconv.Itoa(len(page))
}

// writer returns an encoder: the best one for cached pages, else a fast one.
func (all *recodings) writer(best bool) *gzip.Writer {
	pool, level := &all.writers, gzip.BestSpeed
	if best {
		pool, level = &all.best, cachedLevel
	}
	if z, _ := pool.Get().(*gzip.Writer); z != nil {
		return z
	}
	z, _ := gzip.NewWriterLevel(nil, level) // both levels exist
	return z
}

func (all *recodings) put(z *gzip.Writer, best bool) {
	if best {
		all.best.Put(z)
		return
	}
	all.writers.Put(z)
}

func (all *recodings) buffer() *bytes.Buffer {
	if b, _ := all.buffers.Get().(*bytes.Buffer); b != nil {
		return b
	}
	return new(bytes.Buffer)
}

func (all *recodings) free(b *bytes.Buffer) {
	if b.Cap() <= largeBuffer*2 {
		b.Reset()
		all.buffers.Put(b)
	}
}

// decoded is a decompressed body.
type decoded struct {
	from io.ReadCloser
	all  *recodings
	z    *gzip.Reader // nil before the first Read
}

// Read decodes the data received so far.
func (d *decoded) Read(b []byte) (int, error) {
	if d.z == nil {
		z, _ := d.all.readers.Get().(*gzip.Reader)
		if z == nil {
			z = new(gzip.Reader)
		}
		if err := z.Reset(d.from); err != nil {
			return 0, err // treat an empty body as an empty page
		}
		d.z = z
	}
	return d.z.Read(b)
}

// Close ends the body.
func (d *decoded) Close() error {
	if d.z != nil {
		d.all.readers.Put(d.z)
		d.z = nil
	}
	return d.from.Close()
}

// encode compresses a page again, and sets its header.
func (lw *linked) encode(h http.Header) {
	h["Content-Encoding"] = gzipped
	addVary(h, "Accept-Encoding")
	if lw.in == nil {
		return // a HEAD request, or a complete body
	}
	z := lw.again.p.recodings.writer(false)
	z.Reset(lw.to)
	lw.again.out, lw.in.w = z, z
}

// FlushError flushes the response, for [http.ResponseController].
func (lw *linked) FlushError() error {
	if !lw.wrote {
		lw.WriteHeader(http.StatusOK)
	}
	if lw.again != nil && lw.again.out != nil {
		if err := lw.again.out.Flush(); err != nil {
			return err
		}
	}
	if lw.joined != nil {
		if err := lw.joined.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(lw.to).Flush()
}

// close ends the page.
func (lw *linked) close() error {
	if lw.in == nil {
		return nil
	}
	err := lw.in.Close()
	if lw.joined != nil {
		err = errors.Join(err, lw.joined.Flush())
	}
	if lw.again != nil && lw.again.out != nil {
		err = errors.Join(err, lw.again.out.Close())
		lw.again.p.recodings.put(lw.again.out, false)
		lw.again.out = nil
	}
	return err
}
