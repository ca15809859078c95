package static

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// take200 requests an item from the handler and writes the response to a file.
func (b *Build) take200(ctx context.Context, it Item, name string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, cmp.Or(it.Ask, b.prefix+it.Path), nil)
	if err != nil {
		return fmt.Errorf("build: %s: %w", it.Path, err)
	}
	r.Host, r.RequestURI = b.base.Host, r.URL.RequestURI()
	o := &output{build: b, name: name}
	defer func() { _ = o.discard() }() // does nothing if the file was added to the batch
	a := &answer{ctx: ctx, header: make(http.Header), to: o}
	_, ours := b.own[name]
	if ours {
		b.own[name] = new(bytes.Buffer)
		a.to = b.own[name]
	}
	b.handler.ServeHTTP(a, r)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case a.err != nil:
		return fmt.Errorf("build: %s: %w", name, a.err)
	case a.status >= 500:
		return fmt.Errorf("build: %s: response status is %d", it.Path, a.status)
	case a.status != http.StatusOK:
		b.Report.leave(it.Path, it.Protocol, fmt.Sprintf("http-%d", a.status), fmt.Sprintf("response status is %d", a.status))
		delete(b.names, keyOf(fold(name)))
		return nil
	}
	if ours {
		delete(b.names, keyOf(fold(name)))
		return nil
	}
	e := b.entryOf(it, a.header)
	modified, _ := http.ParseTime(a.header.Get("Last-Modified")) // zero if absent
	if it.Protocol == "" {
		modified = time.Time{} // the links of a file can change without the file
	}
	if err := o.finish(modified, e); err != nil {
		return fmt.Errorf("build: %s: %w", name, err)
	}
	return nil
}

// answer is an [http.ResponseWriter] that writes to a file.
type answer struct {
	ctx    context.Context //nolint:containedctx // the context of one request
	header http.Header
	status int
	to     io.Writer
	err    error
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

// Write implements [http.ResponseWriter]. It writes the body only of a 200 response.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.status != http.StatusOK {
		return len(p), nil
	}
	if a.err = cmp.Or(a.err, a.ctx.Err()); a.err != nil {
		return 0, a.err
	}
	var n int
	n, a.err = a.to.Write(p)
	return n, a.err
}

// entryOf returns the header fields that a server should send with a file. For the site's own
// files these are only the links, because servers set the other fields.
func (b *Build) entryOf(it Item, h http.Header) *entry {
	e := &entry{Path: it.Path, Protocol: it.Protocol, Link: strings.Join(h.Values("Link"), ", "), Immutable: it.Immutable}
	if it.Protocol == "" {
		return e
	}
	e.Tag = h.Get("Etag")
	if strings.HasPrefix(e.Tag, "W/") {
		e.Tag = ""
	}
	var common []field
	for name, values := range h {
		if !ofServers[name] && (name != acceptRanges || h.Get(name) == "none") {
			common = append(common, field{name, strings.Join(values, ", ")})
		}
	}
	slices.SortFunc(common, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	e.Set = b.set(common, it.Immutable)
	return e
}

// ofServers contains the fields that a server sets itself, or that are in an entry.
var ofServers = map[string]bool{
	"Content-Digest": true, "Content-Length": true, "Date": true, "Etag": true,
	"Last-Modified": true, "Link": true, "Repr-Digest": true, "Server": true,
}

// set returns the number of a header that files have in common. It adds the header if it is new.
func (b *Build) set(common []field, immutable bool) int {
	text := fmt.Sprint(immutable, common)
	n, known := b.sets[text]
	if !known {
		b.lists, b.immutable = append(b.lists, common), append(b.immutable, immutable)
		n = len(b.lists)
		b.sets[text] = n
	}
	return n
}
