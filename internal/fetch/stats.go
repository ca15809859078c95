package fetch

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// Stats counts the requests of a [Client] so far.
type Stats struct {
	Requests    int64    // requests sent, including redirects and retries
	Failed      int64    // requests without a response, including those to refused addresses
	Retries     int64    // requests that Do repeated
	Status      [6]int64 // responses by class: Status[2] counts 2xx; [0] is unused
	NotModified int64    // 304 responses, part of Status[3]
	Conditional int64    // conditional requests
	HeaderBytes int64    // response headers in HTTP/1.1 form, an estimate
	BodyBytes   int64    // coded bytes of response bodies that were read

	// HTML documents with status 200 that [Decode] has read to their end: their number, their part
	// of HeaderBytes and BodyBytes, and their decoded bytes.
	HTML, HTMLReceived, HTMLBytes int64
}

// Received returns the bytes of headers and bodies together.
func (s Stats) Received() int64 { return s.HeaderBytes + s.BodyBytes }

type counters struct {
	requests, failed, retries, notModified, conditional, header, body atomic.Int64

	html, htmlReceived, htmlBytes atomic.Int64

	status [6]atomic.Int64
}

// Stats returns the current counts. It may be called while requests run.
func (c *Client) Stats() Stats {
	s := Stats{
		Requests:    c.stats.requests.Load(),
		Failed:      c.stats.failed.Load(),
		Retries:     c.stats.retries.Load(),
		NotModified: c.stats.notModified.Load(),
		HeaderBytes: c.stats.header.Load(),
		BodyBytes:   c.stats.body.Load(),
		Conditional: c.stats.conditional.Load(),

		HTML: c.stats.html.Load(), HTMLReceived: c.stats.htmlReceived.Load(), HTMLBytes: c.stats.htmlBytes.Load(),
	}
	for i := range s.Status {
		s.Status[i] = c.stats.status[i].Load()
	}
	return s
}

// ask counts a request.
func (c *counters) ask(h http.Header) {
	c.requests.Add(1)
	if h.Get("If-None-Match") != "" || h.Get("If-Modified-Since") != "" {
		c.conditional.Add(1)
	}
}

// count counts a response and returns the bytes of its header.
func (c *counters) count(resp *http.Response) int64 {
	if class := resp.StatusCode / 100; class >= 1 && class < len(c.status) {
		c.status[class].Add(1)
	}
	if resp.StatusCode == http.StatusNotModified {
		c.notModified.Add(1)
	}
	n := len(resp.Proto) + len(resp.Status) + len(" \r\n") + len("\r\n")
	for k, values := range resp.Header {
		for _, v := range values {
			n += len(k) + len(v) + len(": \r\n")
		}
	}
	c.header.Add(int64(n))
	return int64(n)
}

// page counts an HTML document that was read to its end.
func (c *counters) page(received, content int64) {
	c.html.Add(1)
	c.htmlReceived.Add(received)
	c.htmlBytes.Add(content)
}

// isHTML reports whether a response is an HTML document.
func isHTML(resp *http.Response) bool {
	if resp.StatusCode != http.StatusOK || !hasBody(resp) {
		return false
	}
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	t = strings.ToLower(strings.TrimSpace(t))
	return t == "text/html" || t == "application/xhtml+xml"
}
