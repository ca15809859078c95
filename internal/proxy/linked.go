package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf16"

	"github.com/millrace/millrace"
)

// linked is a response writer that adds links to a page.
type linked struct {
	to    http.ResponseWriter
	head  bool // the request is a HEAD
	plain bool // nothing is inserted
	find  func() *additions
	// without adds a header field with the reason why the page has no other form, if one was
	// requested.
	without func(h http.Header)
	adds    *additions // If nil, find has not been called yet.
	in      *injector
	joined  *bufio.Writer // joins the pieces that in writes. If nil, pieces are sent one by one.
	join    bool          // join pieces, because the handler around this server decides by the first piece whether to compress
	again   *recoding     // recoding, if the site's server sends the page, or nil
	wrote   bool
}

// load finds the additions once.
func (lw *linked) load() *additions {
	if lw.adds == nil {
		lw.adds = lw.find()
		if lw.plain && lw.adds.mark != "" {
			lw.adds = &additions{fields: lw.adds.fields, vary: lw.adds.vary}
		}
	}
	return lw.adds
}

// prepare rewrites the conditions of a request, because the origin knows only the page without
// links. A validator of the page with the current links becomes the plain page's validator; others
// never match. It returns true if the request has such a condition or a range, and the page will
// get elements.
func (lw *linked) prepare(r *http.Request) bool {
	tags := r.Header["If-None-Match"]
	if tags == nil && r.Header["Range"] == nil {
		return false
	}
	mark := lw.load().mark
	if mark == "" {
		return false
	}
	if tags == nil {
		return true
	}
	var own []string
	for tag := range strings.SplitSeq(strings.Join(tags, ","), ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" {
			own = append(own, tag)
		} else if opaque, ok := strings.CutSuffix(tag, mark+`"`); ok {
			own = append(own, opaque+`"`)
		}
	}
	if own == nil {
		// Without a match, send a validator that never matches, so that a date is ignored (RFC
		// 9110, section 13.1.3).
		own = []string{`"~"`}
	}
	r.Header["If-None-Match"] = []string{strings.Join(own, ", ")}
	return true
}

// Header implements [http.ResponseWriter].
func (lw *linked) Header() http.Header { return lw.to.Header() }

// WriteHeader adds the links to the header.
func (lw *linked) WriteHeader(status int) {
	h := lw.to.Header()
	if status < 200 || lw.wrote {
		lw.to.WriteHeader(status)
		return
	}
	lw.wrote = true
	html := IsHTML(h.Get("Content-Type"))
	if status == http.StatusOK && html || status == http.StatusNotModified {
		adds := lw.load()
		adds.header(h)
		if lw.without != nil {
			lw.without(h)
		}
		if adds.mark != "" && h.Get("Content-Encoding") == "" && mayTransform(h) {
			lw.change(h, status)
			if lw.again != nil && lw.again.coded {
				lw.encode(h)
			}
		}
	}
	lw.to.WriteHeader(status)
}

// change adapts the header to the inserted elements, and prepares their insertion.
func (lw *linked) change(h http.Header, status int) {
	if tag := h.Get("Etag"); tag != "" {
		opaque := strings.TrimSuffix(strings.TrimPrefix(tag, "W/"), `"`)
		h["Etag"] = []string{"W/" + opaque + lw.adds.mark + `"`}
	}
	for _, name := range [...]string{"Accept-Ranges", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5"} {
		delete(h, name)
	}
	if lw.again != nil && lw.again.completed {
		return
	}
	delete(h, "Content-Length")
	if status != http.StatusOK || lw.head {
		return
	}
	lw.in = &injector{w: lw.to, insert: lw.adds.elements}
	if lw.join {
		lw.joined = bufio.NewWriter(lw.to)
		lw.in.w = lw.joined
	}
}

// element returns a link as HTML in ASCII, valid in any character set and in XHTML.
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

// script returns a JSON-LD object as a script element in ASCII, or "" if data is not a JSON
// object. Escapes prevent data from ending the element or starting a comment.
func script(data json.RawMessage) string {
	var flat bytes.Buffer
	if json.Compact(&flat, data) != nil || flat.Bytes()[0] != '{' {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<script type="application/ld+json">`)
	for _, c := range flat.String() {
		switch {
		case c == '<' || c == '>' || c == '&' || c >= 0x7f && c <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, c) // in valid JSON, these occur only in strings
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteString("</script>\n")
	return b.String()
}

// IsHTML reports whether pages of a media type can get elements.
func IsHTML(contentType string) bool {
	switch contentType {
	case "text/html", "text/html; charset=utf-8", "text/html; charset=UTF-8":
		return true // fast path for the most common values
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "text/html" {
		return false
	}
	charset := strings.ToLower(params["charset"])
	return !strings.HasPrefix(charset, "utf-16") && !strings.HasPrefix(charset, "utf-32")
}

// Write writes the page with its elements.
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

// ReadFrom copies files directly if nothing is inserted.
func (lw *linked) ReadFrom(r io.Reader) (int64, error) {
	if lw.wrote && lw.in == nil {
		return io.Copy(lw.to, r)
	}
	return io.Copy(struct{ io.Writer }{lw}, r)
}

// Unwrap returns the underlying writer, for [http.ResponseController].
func (lw *linked) Unwrap() http.ResponseWriter { return lw.to }
