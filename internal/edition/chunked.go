package edition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// chunked is a chunked document in a manifest.
type chunked struct {
	Version string `json:"version"` // Version of the document's Parts
	Head    []byte `json:"head"`
	Between []byte `json:"between"`
	Tail    []byte `json:"tail"`
	Tree    tree   `json:"tree"`
}

// cut returns a chunked document of parts. Only the parts with changed keys differ from old, which
// may be nil.
func (g *grower) cut(p *millrace.Parts, old *chunked, changed []string) (*chunked, error) {
	var last *tree
	if old != nil && old.Version == p.Version && bytes.Equal(old.Between, p.Separator) {
		last = &old.Tree
	}
	t, err := g.grow(p, last, changed)
	if err != nil {
		return nil, err
	}
	c := &chunked{Version: p.Version, Head: p.Head, Between: p.Separator, Tail: p.Tail, Tree: *t}
	if t.Root.Parts == 0 {
		c.Head, c.Tail = p.WithoutParts(), nil
	}
	return c, nil
}

// ETag returns the validator of a large document with the given parts without building the
// document.
func ETag(ctx context.Context, p *millrace.Parts) (string, error) {
	c, err := newGrower(ctx, discardStore{}, new(encoders)).cut(p, nil, nil)
	if err != nil {
		return "", err
	}
	return c.etag(), nil
}

// discardStore stores nothing.
type discardStore struct{ artifact.Store }

// Put implements [artifact.Store].
func (discardStore) Put(context.Context, string, io.Reader) error { return nil }

// etag returns the validator of the identity bytes.
func (c *chunked) etag() string {
	sum := sha256.New()
	for _, b := range [][]byte{c.Head, c.Between, c.Tail, c.Tree.Root.Sum[:]} {
		_, _ = sum.Write(binary.AppendUvarint(nil, uint64(len(b))))
		_, _ = sum.Write(b)
	}
	return "sha256-" + hex.EncodeToString(sum.Sum(nil))
}

// sum returns "sha256-" and the SHA-256 of the identity bytes.
func (c *chunked) sum(ctx context.Context, s *Server) (string, error) {
	b, err := c.in(identity, s)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	err = b.collect(ctx, h, 0, b.length())
	return "sha256-" + hex.EncodeToString(h.Sum(nil)), err
}

// digestOf returns the Content-Digest for the ETag of a document with DigestETag.
func digestOf(etag string) string {
	sum, _ := hex.DecodeString(strings.TrimPrefix(etag, "sha256-"))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"
}

// size returns the number of identity bytes.
func (c *chunked) size() int64 { return int64(len(c.Head)+len(c.Tail)) + c.Tree.Root.Size }

// The first bytes and the last block of a gzip file. The header has no file name, time or
// operating system.
var (
	gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
	gzipEnd  = []byte{3, 0} // an empty final block
)

// bodies provides the bytes of a chunked document in one coding.
type bodies struct {
	*chunked
	loss
	cache      *Server
	name       string // name in the response cache
	path       string // path of the document, or "" if unknown
	store      artifact.Store
	coded      bool // true = gzip; false = identity
	head, tail []byte
	between    []byte

	sum          atomic.Pointer[string] // Content-Digest, or nil if not computed yet
	wake         func()                 // Server.wake
	digestWanted atomic.Bool            // a response was sent without the digest
	brotli       atomic.Bool            // a request preferred brotli; set only for identity
}

// in returns the bytes of the document in a coding, which must be gzip or identity.
func (c *chunked) in(coding coding, s *Server) (*bodies, error) {
	b := &bodies{chunked: c, cache: s, name: c.etag(), loss: loss{server: &s.damaged}, store: s.artifacts, wake: s.wake, coded: coding == gzipCoding, head: c.Head, tail: c.Tail, between: c.Between}
	if !b.coded {
		return b, nil
	}
	head := bytes.NewBuffer(bytes.Clone(gzipHead))
	if err := s.enc.deflate(head, c.Head); err != nil {
		return nil, err
	}
	b.head = head.Bytes()
	b.between = segment(c.Between)
	crc := crc32.ChecksumIEEE(c.Head)
	crc = combineCRC(crc, c.Tree.Root.CRC, c.Tree.Root.Size)
	crc = combineCRC(crc, crc32.ChecksumIEEE(c.Tail), int64(len(c.Tail)))
	b.tail = append(segment(c.Tail), gzipEnd...)
	b.tail = binary.LittleEndian.AppendUint32(b.tail, crc)
	b.tail = binary.LittleEndian.AppendUint32(b.tail, uint32(c.size())) //nolint:gosec // the format requires the size modulo 2^32
	return b, nil
}

// length returns the number of bytes in the coding.
func (b *bodies) length() int64 { return int64(len(b.head)+len(b.tail)) + b.of(&b.Tree.Root) }

// of returns the size of a branch in the coding, in bytes.
func (b *bodies) of(x *branch) int64 {
	if b.coded {
		return x.Coded
	}
	return x.Size
}

// digestAtOnce is the maximum size in bytes at which a response waits for its digest.
const digestAtOnce = 1 << 20

// digest implements [content]. The digest of a long document is deferred work.
func (b *bodies) digest(ctx context.Context) (string, error) {
	switch sum := b.known(); {
	case b.err() != nil:
		return "", b.err()
	case sum != "":
		return sum, nil
	case b.length() <= digestAtOnce:
		return b.read(ctx)
	}
	if !b.digestWanted.Swap(true) {
		b.wake()
	}
	return "", nil
}

// read computes the digest.
func (b *bodies) read(ctx context.Context) (string, error) {
	h := sha256.New()
	if err := b.write(ctx, h, 0, b.length()); err != nil {
		return "", err
	}
	sum := "sha-256=:" + base64.StdEncoding.EncodeToString(h.Sum(nil)) + ":"
	b.sum.Store(&sum)
	return sum, nil
}

// known implements [content].
func (b *bodies) known() string {
	if sum := b.sum.Load(); sum != nil {
		return *sum
	}
	return ""
}

// maxCachedSize is the maximum size in bytes of a document in the response cache.
const maxCachedSize = 256 << 10

// write writes n bytes from an offset. It reads short documents from the response
// cache.
func (b *bodies) write(ctx context.Context, w io.Writer, from, n int64) error {
	size := b.length()
	if size > maxCachedSize {
		return b.collect(ctx, w, from, n)
	}
	variant := strconv.FormatBool(b.coded)
	_, body := b.cache.CachedBody(b.name, variant)
	if body == nil {
		var all bytes.Buffer
		all.Grow(int(size))
		if err := b.collect(ctx, &all, 0, size); err != nil {
			return err
		}
		body = all.Bytes()
		b.cache.CacheBody(b.name, variant, "", body)
	}
	_, err := w.Write(body[from : from+n])
	return err
}

// collect reads the chunks, and writes n bytes of the document from an offset.
func (b *bodies) collect(ctx context.Context, w io.Writer, from, n int64) error {
	out := &window{w: w, skip: from, left: n}
	b.cache.reading.Store(out, b)
	defer b.cache.reading.Delete(out)
	if _, err := out.Write(b.head); err != nil {
		return err
	}
	if b.Tree.Root.Parts > 0 {
		if err := b.branch(ctx, out, &b.Tree.Root, b.Tree.Height); err != nil {
			return err
		}
	}
	_, err := out.Write(b.tail)
	return err
}

// branch writes the bytes of a branch that are in the window.
func (b *bodies) branch(ctx context.Context, out *window, x *branch, height int) error {
	if size := b.of(x); out.left == 0 || out.skip >= size {
		out.skip -= min(out.skip, size)
		return nil
	}
	if height == 0 {
		return b.chunk(ctx, out, x)
	}
	below, err := children(ctx, b.store, x)
	if err != nil {
		return b.fail(ctx, x.node(), err)
	}
	for i := range below {
		if i > 0 {
			if _, err := out.Write(b.between); err != nil {
				return err
			}
		}
		if err := b.branch(ctx, out, &below[i], height-1); err != nil {
			return err
		}
	}
	return nil
}

// chunk writes the bytes of a chunk that are in the window. It writes no part of a damaged chunk,
// because a client could not detect the damage in a range.
func (b *bodies) chunk(ctx context.Context, out *window, x *branch) error {
	r, err := b.store.Open(ctx, x.chunk(), 0, x.Coded)
	if err != nil {
		return b.fail(ctx, x.chunk(), err)
	}
	defer r.Close()
	enc := &b.cache.enc
	coded := enc.buffer()
	defer enc.free(coded)
	coded.Grow(int(x.Coded) + len(gzipEnd) + bytes.MinRead)
	n, err := io.CopyN(coded, r, x.Coded)
	if sum := crc32.ChecksumIEEE(coded.Bytes()); err == nil && sum != x.CodedCRC {
		err = fmt.Errorf("checksum of %d bytes is %08x, want %08x", n, sum, x.CodedCRC)
	}
	if err != nil {
		return b.fail(ctx, x.chunk(), errors.Join(err, b.store.Delete(ctx, x.chunk())))
	}
	if b.coded {
		_, err = out.Write(coded.Bytes())
		return err
	}
	coded.Write(gzipEnd)
	return enc.inflate(out, coded.Bytes())
}

// content provides the bytes of a representation from artifacts.
type content interface {
	// write writes n bytes from an offset.
	write(ctx context.Context, w io.Writer, from, n int64) error
	// digest returns the Content-Digest, or "" if it is not computed yet. If err returns an
	// error, digest returns it, too.
	digest(ctx context.Context) (string, error)
	// known returns the digest if it has been computed, or "".
	known() string
	// err returns an error if a response has found an artifact missing or damaged.
	err() error
}

// loss records that an artifact of a representation is missing or damaged.
type loss struct {
	server *atomic.Bool // points to Server.damaged
	name   atomic.Pointer[string]
}

// fail schedules the rebuilding of an unreadable artifact, unless the context has ended. It returns
// the error for the response.
func (l *loss) fail(ctx context.Context, name string, err error) error {
	if ctx.Err() == nil {
		l.name.Store(&name)
		l.server.Store(true)
	}
	return fmt.Errorf("%s is missing or damaged: %w: %v", name, millrace.ErrUnavailable, err) //nolint:errorlint // not wrapped, because the document itself is not absent
}

func (l *loss) err() error {
	if name := l.name.Load(); name != nil {
		return fmt.Errorf("%s is missing or damaged: %w", *name, millrace.ErrUnavailable)
	}
	return nil
}

// window is an [io.Writer] that drops the first skip bytes, writes the next left bytes to w, and
// drops the rest.
type window struct {
	w          io.Writer
	skip, left int64
	err        error // error of w
}

func (o *window) Write(b []byte) (int, error) {
	n := len(b)
	skip := min(o.skip, int64(n))
	o.skip -= skip
	b = b[skip:]
	b = b[:min(o.left, int64(len(b)))]
	if len(b) > 0 {
		_, o.err = o.w.Write(b)
		o.left -= int64(len(b))
	}
	return n, o.err
}

// rep returns the representation of the document in a coding.
func (c *chunked) rep(coding coding, s *Server) (*rep, error) {
	b, err := c.in(coding, s)
	if err != nil {
		return nil, err
	}
	size := b.length()
	return &rep{coding: coding, content: b, size: size, plain: c.size(), length: [1]string{strconv.FormatInt(size, 10)}}, nil
}
