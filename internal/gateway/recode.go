package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
)

// recoding is a page into which elements are inserted although it comes
// compressed: it is decoded, and compressed again, while it streams through. A
// site that compresses its pages so goes on doing it.
type recoding struct {
	all   *recodings
	coded bool // the page has come so
	out   *gzip.Writer
}

// recodings bounds how many pages are recoded at once, since each takes some
// memory. Others are asked for as they are.
type recodings struct {
	open    atomic.Int64
	writers sync.Pool
	readers sync.Pool
}

const maxRecodings = 32

type recodingKey struct{}

// recode asks for a page in a form that elements can be inserted into. whole is
// the request that goes to the site's server, whose header r shares. Call done
// at the end.
func (g *Gateway) recode(lw *linked, r, whole *http.Request) (_ *http.Request, done func()) {
	accepted := r.Header["Accept-Encoding"]
	if accepted == nil || lw.look().mark == "" {
		return whole, func() {}
	}
	r.Header["Accept-Encoding"] = uncoded
	if !acceptsGzip(accepted) {
		return whole, func() {}
	}
	done = func() { g.recodings.open.Add(-1) }
	if g.recodings.open.Add(1) > maxRecodings {
		return whole, done
	}
	r.Header["Accept-Encoding"] = gzipped
	lw.again = &recoding{all: &g.recodings}
	return whole.WithContext(context.WithValue(whole.Context(), recodingKey{}, lw.again)), done
}

var (
	uncoded = []string{"identity"}
	gzipped = []string{"gzip"}
)

// acceptsGzip reports whether a client takes gzip (RFC 9110, section 12.5.3).
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

// uncompress has an answer of the site's server decoded if elements are to be
// inserted into it.
func uncompress(resp *http.Response) {
	again, _ := resp.Request.Context().Value(recodingKey{}).(*recoding)
	if again == nil || resp.StatusCode != http.StatusOK || !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") ||
		!isHTML(resp.Header.Get("Content-Type")) || !mayTransform(resp.Header) {
		return
	}
	again.coded = true
	delete(resp.Header, "Content-Encoding")
	if resp.Request.Method != http.MethodHead {
		delete(resp.Header, "Content-Length")
		resp.Body = &decoded{from: resp.Body, all: again.all}
	}
}

// decoded is a body without its compression.
type decoded struct {
	from io.ReadCloser
	all  *recodings
	z    *gzip.Reader // nil: nothing was read
}

// Read decodes what has come so far.
func (d *decoded) Read(b []byte) (int, error) {
	if d.z == nil {
		z, _ := d.all.readers.Get().(*gzip.Reader)
		if z == nil {
			z = new(gzip.Reader)
		}
		if err := z.Reset(d.from); err != nil {
			return 0, err // nothing at all is an empty page
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

// encode compresses a page again, from the header on.
func (lw *linked) encode(h http.Header) {
	h["Content-Encoding"] = gzipped
	delete(h, "Content-Length")
	addVary(h, "Accept-Encoding")
	if lw.in == nil {
		return // of a HEAD
	}
	z, _ := lw.again.all.writers.Get().(*gzip.Writer)
	if z == nil {
		z, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // that level there is
	}
	z.Reset(lw.to)
	lw.again.out, lw.in.w = z, z
}

// FlushError serves [http.ResponseController]: what has come of a page so far
// goes out.
func (lw *linked) FlushError() error {
	if !lw.wrote {
		lw.WriteHeader(http.StatusOK)
	}
	if lw.again != nil && lw.again.out != nil {
		if err := lw.again.out.Flush(); err != nil {
			return err
		}
	}
	return lw.to.FlushError()
}

// close ends the page.
func (lw *linked) close() error {
	if lw.in == nil {
		return nil
	}
	err := lw.in.Close()
	if lw.again != nil && lw.again.out != nil {
		err = errors.Join(err, lw.again.out.Close())
		lw.again.all.writers.Put(lw.again.out)
		lw.again.out = nil
	}
	return err
}
