package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// relay is the address that all clients of the month use for the site. It forwards each
// connection to the server of the day, and records the transferred bytes.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	to       string // the server's address
	conns    []*tapped
	open     sync.WaitGroup
}

func newRelay(ctx context.Context) (*relay, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	j := &relay{listener: ln}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			j.mu.Lock()
			to := j.to
			j.open.Add(1)
			j.mu.Unlock()
			go j.join(ctx, c, to)
		}
	}()
	return j, nil
}

// join forwards data in both directions until one direction ends.
func (j *relay) join(ctx context.Context, client net.Conn, to string) {
	defer j.open.Done()
	defer func() { _ = client.Close() }()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	t := &tapped{Conn: client}
	j.mu.Lock()
	j.conns = append(j.conns, t)
	j.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(io.MultiWriter(&t.sent, server), client) // either side may close at any time
		_ = server.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(io.MultiWriter(client, &t.received), server)
		_ = client.Close()
	})
	both.Wait()
}

// during calls do, and returns the traffic between the client and one server in that time.
func (j *relay) during(to string, client func() error) (*carried, error) {
	j.mu.Lock()
	j.to, j.conns = to, nil
	j.mu.Unlock()
	start := time.Now()
	if err := client(); err != nil {
		return nil, err
	}
	took := time.Since(start)
	j.open.Wait() // the client has exited, or has closed its connections
	c := &carried{took: took, parts: map[string]*carriedPart{}, fields: map[string]int64{}}
	for _, t := range j.conns {
		if err := c.add(t); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// carried is the traffic on the wire, in bytes.
type carried struct {
	requests int64
	bodies   int64 // bytes of response bodies, as coded
	headers  int64 // all other bytes, in both directions: start lines, fields, framing
	took     time.Duration
	parts    map[string]*carriedPart // bytes by the kind of the requested document
	fields   map[string]int64        // bytes of header fields by name, with the prefix "> " if sent or "< " if received
}

type carriedPart struct{ requests, unmodified, bodies, headers int64 }

func (c *carried) total() int64 { return c.bodies + c.headers }

func (c *carried) plus(d *carried) {
	c.requests, c.bodies, c.headers, c.took = c.requests+d.requests, c.bodies+d.bodies, c.headers+d.headers, c.took+d.took
	for k, p := range d.parts {
		q := c.part(k)
		q.requests, q.unmodified, q.bodies, q.headers = q.requests+p.requests, q.unmodified+p.unmodified, q.bodies+p.bodies, q.headers+p.headers
	}
	for k, n := range d.fields {
		c.fields[k] += n
	}
}

func (c *carried) part(kind string) *carriedPart {
	p := c.parts[kind]
	if p == nil {
		p = new(carriedPart)
		c.parts[kind] = p
	}
	return p
}

// add parses a connection. If the client has disconnected in the middle of a body, add counts the
// received part.
func (c *carried) add(t *tapped) error {
	c.headers += int64(t.sent.Len() + t.received.Len())
	sent, received := int64(t.sent.Len()), int64(t.received.Len())
	from, to := &counted{r: &t.sent}, &counted{r: &t.received}
	asked, answered := bufio.NewReader(from), bufio.NewReader(to)
	for {
		was, heard := sent-int64(asked.Buffered())-int64(t.sent.Len()), received-int64(answered.Buffered())-int64(t.received.Len())
		req, err := http.ReadRequest(asked)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("parse request: %w", err)
		}
		c.requests++
		resp, err := http.ReadResponse(answered, req)
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				return nil // the client did not wait for the response
			}
			return fmt.Errorf("parse response of %s: %w", req.URL, err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		c.bodies, c.headers = c.bodies+n, c.headers-n
		p := c.part(kindOf(req))
		p.requests++
		p.bodies += n
		p.headers += sent - int64(asked.Buffered()) - int64(t.sent.Len()) - was
		p.headers += received - int64(answered.Buffered()) - int64(t.received.Len()) - heard - n
		if resp.StatusCode == http.StatusNotModified {
			p.unmodified++
		}
		c.count(">", req.Header)
		c.count("<", resp.Header)
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return fmt.Errorf("read body of %s: %w", req.URL, err)
		}
	}
}

func (c *carried) count(way string, h http.Header) {
	for name, values := range h {
		for _, v := range values {
			c.fields[way+" "+name] += int64(len(name) + len(": ") + len(v) + len("\r\n"))
		}
	}
}

// counted hides the other methods of a buffer, so that all reads use the reader that wraps it.
type counted struct{ r *bytes.Buffer }

func (c *counted) Read(p []byte) (int, error) { return c.r.Read(p) }

// kindOf returns the kind of the requested document: the path without the name of a
// page or version, and the names of the query's parameters.
func kindOf(r *http.Request) string {
	parts := strings.Split(r.URL.Path, "/")
	for i, s := range parts {
		switch {
		case strings.HasSuffix(s, ".html"):
			parts[i] = "PAGE"
		case i > 1 && strings.Contains(s, "-"): // such as all-0123456789abcdef.scp.zst
			stem, rest, _ := strings.Cut(s, "-")
			if _, suffix, ok := strings.Cut(rest, "."); ok {
				stem += "-*." + suffix
			}
			parts[i] = stem
		}
	}
	kind := strings.Join(parts, "/")
	var names []string
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if name, _, ok := strings.Cut(pair, "="); ok {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		kind += "?" + strings.Join(names, "&")
	}
	return kind
}
