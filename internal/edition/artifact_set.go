package edition

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/spool"
)

// storedArtifact is an artifact of an edition. If Gzip is set, the store has the gzip bytes instead
// of the identity bytes.
type storedArtifact struct {
	Protocol string `json:"protocol"`
	millrace.Artifact
	Gzip *coded `json:"gzip,omitempty"` // stored gzip bytes that decode to the identity bytes; if nil, the artifact's own bytes are stored
}

// stored returns the size and the hash of the bytes in the store.
func (f *storedArtifact) stored() *coded {
	if f.Gzip != nil {
		return f.Gzip
	}
	return &coded{f.Size, f.Sum}
}

// name returns the name under which the bytes are stored.
func (f *storedArtifact) name() string { return f.stored().name() }

// artifactSuffix ends the names of stored files. It distinguishes them from chunks and nodes.
const artifactSuffix = "-file"

// foreignWithdrawn is how long the paths of another configuration's artifacts return 410. Clients
// may use lists that name these artifacts for that long.
const foreignWithdrawn = 31 * 24 * time.Hour

// makeArtifacts adds the artifacts of the protocols to m. It withdraws the artifacts of a foreign
// prev that m lacks, because different options produce different artifacts.
func (s *Server) makeArtifacts(ctx context.Context, view millrace.View, prev, m *manifest, made done) error {
	now := s.time(view)
	if prev != nil {
		for path, gone := range prev.Gone {
			if now.Before(gone.Until) {
				m.withdraw(path, gone)
			}
		}
	}
	for _, proto := range s.protocols {
		publisher, ok := proto.Publisher.(millrace.ArtifactPublisher)
		if !ok {
			continue
		}
		set := &artifactSet{server: s, proto: proto.Name, stored: s.storedArtifacts(ctx, prev, s.served(), made, proto.Name), view: view, prev: prev, m: m}
		again, err := publisher.Artifacts(ctx, view, now, set)
		if err != nil {
			return fmt.Errorf("artifacts of %s: %w", proto.Name, err)
		}
		if !again.IsZero() && (m.Again.IsZero() || again.Before(m.Again)) {
			m.Again = again
		}
	}
	seen := make(map[string]bool)
	for _, path := range append(m.artifactPaths(), m.documentPaths()...) {
		if seen[path] {
			return fmt.Errorf("two documents or artifacts have the path %s", path)
		}
		seen[path] = true
	}
	if prev != nil && prev.foreign {
		for _, path := range prev.artifactPaths() {
			if !seen[path] {
				m.withdraw(path, withdrawn{Until: now.Add(foreignWithdrawn)})
			}
		}
	}
	return nil
}

// time returns the time for an edition of view: now, or the time of the view if that is later.
func (s *Server) time(view millrace.View) time.Time {
	now := s.now().UTC()
	if site := view.Site(); now.Before(site.Time) {
		now = site.Time // the clock was set back, but an artifact must not be older than a change
	}
	return now
}

// plainArtifacts returns the artifacts without a coding, by their validators. All codings of an
// artifact share its validator.
func (m *manifest) plainArtifacts() map[string]*storedArtifact {
	plain := make(map[string]*storedArtifact)
	for i := range m.Artifacts {
		if f := &m.Artifacts[i]; f.Coding == "" {
			plain[f.ETag] = f
		}
	}
	return plain
}

func (m *manifest) artifactPaths() (paths []string) {
	for _, f := range m.Artifacts {
		paths = append(paths, f.Path)
	}
	return paths
}

func (m *manifest) documentPaths() (paths []string) {
	for _, d := range m.Documents {
		paths = append(paths, d.Path)
	}
	return paths
}

// due reports whether the artifacts must be built again.
func (m *manifest) due(now time.Time) bool {
	return m != nil && !m.Again.IsZero() && !now.Before(m.Again)
}

// entry returns the key and the entry of the artifact. plain is the same artifact without a coding,
// or nil if unknown.
func (f *storedArtifact) entry(s *Server, plain *storedArtifact, now time.Time) (key, *entry, error) {
	u, err := url.Parse(f.Path)
	if err != nil {
		return key{}, nil, fmt.Errorf("artifact: %w: %w", millrace.ErrInvalid, err)
	}
	header := f.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	header.Set("Last-Modified", f.Modified.UTC().Format(http.TimeFormat))
	if header["Content-Encoding"] = nil; f.Coding != "" {
		header.Set("Content-Encoding", f.Coding)
	}
	e, err := prepare(&millrace.Document{Path: f.Path, ETag: f.ETag, Header: header}, s.guarded(f.Protocol), 0, now)
	if err != nil {
		return key{}, nil, err
	}
	size := int64(0)
	if plain != nil {
		size, e.versions = plain.Size, f.Versions
		if e.plain, err = plain.rep(s, size); err != nil {
			return key{}, nil, err
		}
	}
	r := e.plain
	if f != plain {
		if r, err = f.rep(s, size); err != nil {
			return key{}, nil, err
		}
	}
	e.setSubject(&millrace.Subject{PageCount: f.PageCount}, f.Protocol)
	e.key, e.large, e.signer = keyOf(u), true, s.signer
	e.reps[identity].Store(r)
	return e.key, e, nil
}

// rep returns the representation of the artifact. plain is the size of the artifact without a
// coding, or 0 if unknown.
func (f *storedArtifact) rep(s *Server, plain int64) (*rep, error) {
	r, err := (&coded{f.Size, f.Sum}).rep(identity, s, plain)
	if err == nil && f.Gzip != nil {
		b := r.content.(*blob)
		b.name, b.gzip = f.name(), true
	}
	return r, err
}

// blob is the [content] of bytes that are stored as a file.
type blob struct {
	loss
	store artifact.Store
	name  string
	gzip  bool // the stored bytes are gzip, and write decodes them
	size  int64
	sum   []byte // SHA-256 of all bytes, after decoding
}

func (b *blob) known() string { return "sha-256=:" + base64.StdEncoding.EncodeToString(b.sum) + ":" }

func (b *blob) digest(context.Context) (string, error) { return b.known(), b.err() }

// write implements [content]. It verifies the hash if all bytes are written.
func (b *blob) write(ctx context.Context, w io.Writer, from, n int64) error {
	out, sum := &window{w: w, left: n}, sha256.New()
	stored := n
	if b.gzip {
		out.skip, from, stored = from, 0, -1
	}
	r, err := b.store.Open(ctx, b.name, from, stored)
	if err != nil {
		return b.fail(ctx, b.name, err)
	}
	defer r.Close()
	in := io.Reader(r)
	if b.gzip {
		in = io.LimitReader(&unzipped{r: r}, out.skip+n)
	}
	if n == b.size {
		in = io.TeeReader(in, sum)
	}
	_, err = io.Copy(out, in)
	switch {
	case out.err != nil:
		return out.err
	case errors.Is(err, errCoded), err == nil && (out.left > 0 || n == b.size && !bytes.Equal(sum.Sum(nil), b.sum)):
		err = fmt.Errorf("hash mismatch: %w", errors.Join(millrace.ErrInvalid, b.store.Delete(ctx, b.name)))
	}
	if err != nil {
		return b.fail(ctx, b.name, err)
	}
	return nil
}

// unzipped decodes gzip from r.
type unzipped struct {
	r io.Reader
	z *gzip.Reader
}

// errCoded is the error for bytes that are not valid gzip.
var errCoded = errors.New("damaged gzip")

func (d *unzipped) Read(b []byte) (n int, err error) {
	if d.z == nil {
		d.z, err = gzip.NewReader(d.r)
	}
	if err == nil {
		n, err = d.z.Read(b)
	} else if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt) {
		err = fmt.Errorf("%w: %w", errCoded, err)
	}
	return n, err
}

// artifactSet is a [millrace.ArtifactSet] of a server.
type artifactSet struct {
	server  *Server
	proto   string
	stored  []storedArtifact
	made    []storedArtifact // new artifacts, which are also in m
	view    millrace.View
	prev, m *manifest
}

// storedArtifacts returns the protocol's artifacts in prev, unless prev is foreign, and in made. It
// omits artifacts whose bytes are not in the store. It assumes that the store has all artifacts of
// the manifest there, which may be nil.
func (s *Server) storedArtifacts(ctx context.Context, prev, there *manifest, made done, proto string) (out []storedArtifact) {
	var have []storedArtifact
	if prev != nil && !prev.foreign {
		have = prev.Artifacts
	}
	served := make(map[string]bool)
	if there != nil {
		for i := range there.Artifacts {
			served[there.Artifacts[i].name()] = true
		}
	}
	exists := s.exists(ctx)
	have = slices.Concat(have, made.artifacts)
	seen := make(map[string]bool)
	for i := range have {
		if f := &have[i]; f.Protocol == proto && !seen[f.Path] && (served[f.name()] || exists(f.name(), f.stored().Size) == nil) {
			seen[f.Path] = true
			out = append(out, *f)
		}
	}
	return out
}

// Existing implements [millrace.ArtifactSet].
func (s *artifactSet) Existing() (out []millrace.Artifact) {
	for i := range s.stored {
		out = append(out, s.stored[i].Artifact)
	}
	return out
}

// Keep implements [millrace.ArtifactSet].
func (s *artifactSet) Keep(f millrace.Artifact) {
	next := storedArtifact{Protocol: s.proto, Artifact: f}
	if i := slices.IndexFunc(s.stored, func(was storedArtifact) bool { return was.Path == f.Path }); i >= 0 {
		next.Gzip = s.stored[i].Gzip
	}
	s.m.Artifacts = append(s.m.Artifacts, next)
}

// Withdraw implements [millrace.ArtifactSet].
func (s *artifactSet) Withdraw(f millrace.Artifact, until time.Time) {
	s.m.withdraw(f.Path, withdrawn{until, s.proto, f.Note})
}

// Withdrawn implements [millrace.ArtifactSet].
func (s *artifactSet) Withdrawn() (notes []json.RawMessage) {
	if s.prev == nil {
		return nil
	}
	for _, gone := range s.prev.Gone {
		if gone.Protocol == s.proto && len(gone.Note) > 0 {
			notes = append(notes, gone.Note)
		}
	}
	for i := range s.prev.Artifacts {
		f := &s.prev.Artifacts[i]
		if held := func(h storedArtifact) bool { return h.Path == f.Path }; f.Protocol == s.proto && !s.prev.foreign && len(f.Note) > 0 && !slices.ContainsFunc(s.stored, held) {
			notes = append(notes, f.Note)
		}
	}
	return notes
}

// withdrawn is an artifact whose path returns 410 until a given time.
type withdrawn struct {
	Until    time.Time       `json:"until"`
	Protocol string          `json:"protocol,omitempty"`
	Note     json.RawMessage `json:"note,omitempty"`
}

func (m *manifest) withdraw(path string, gone withdrawn) {
	if m.Gone == nil {
		m.Gone = make(map[string]withdrawn)
	}
	m.Gone[path] = gone
}

// errGone is the response for a withdrawn artifact.
var errGone = &millrace.RequestError{Status: http.StatusGone, Text: "this file was withdrawn; fetch a new copy of the list that named it"}

// Put implements [millrace.ArtifactSet].
func (s *artifactSet) Put(ctx context.Context, d *millrace.Document) error {
	doc := protocolDocument{d, s.proto}
	since, err := new(manifest).readChanges(ctx, s.view, s.prev, []protocolDocument{doc})
	if err != nil {
		return err
	}
	next, err := s.server.chunk(ctx, doc, s.prev, since[0], s.view, s.server.made())
	s.m.Documents = append(s.m.Documents, next)
	return err
}

// Create implements [millrace.ArtifactSet].
func (s *artifactSet) Create() (millrace.ArtifactWriter, error) {
	d := &artifactWriter{set: s}
	d.buf = bufio.NewWriterSize(&d.body, 256<<10)
	return d, nil
}

// artifactWriter is a [millrace.ArtifactWriter].
type artifactWriter struct {
	set  *artifactSet
	body spool.Spool
	buf  *bufio.Writer // writes to body
}

func (d *artifactWriter) Write(b []byte) (int, error) { return d.buf.Write(b) }

// Finish implements [millrace.ArtifactWriter].
func (d *artifactWriter) Finish(ctx context.Context, head []byte, f millrace.Artifact, codings []string, name func(coding, sum string) string) ([]millrace.Artifact, error) {
	defer d.Discard()
	if err := d.buf.Flush(); err != nil {
		return nil, err
	}
	var out []millrace.Artifact
	var inGzip *coded
	for _, token := range codings {
		c, ok := codingOf(cmp.Or(token, "identity"))
		if !ok {
			return nil, fmt.Errorf("%w: unknown coding %q", millrace.ErrInvalid, token)
		}
		body, err := d.body.Reader()
		if err != nil {
			return nil, err
		}
		made := storedArtifact{Protocol: d.set.proto, Artifact: f}
		if c == identity {
			made.Gzip = inGzip
		}
		stored, err := d.set.server.code(ctx, c, made.Gzip == nil, func(w io.Writer) error {
			_, err := io.Copy(w, io.MultiReader(bytes.NewReader(head), body))
			return err
		})
		if err != nil {
			return nil, err
		}
		if c == gzipCoding {
			inGzip = &stored
		}
		made.Coding, made.Size, made.Sum = token, stored.Size, stored.Sum
		made.ETag = cmp.Or(f.ETag, "sha256:"+made.Sum)
		made.Path = name(token, made.Sum)
		d.set.made = append(d.set.made, made)
		d.set.m.Artifacts = append(d.set.m.Artifacts, made)
		out = append(out, made.Artifact)
	}
	return out, nil
}

// Discard implements [millrace.ArtifactWriter].
func (d *artifactWriter) Discard() { d.body.Close() }

// coded identifies stored bytes in one coding.
type coded struct {
	Size int64  `json:"size"`
	Sum  string `json:"sha256"` // lower-case hex
}

func (c *coded) name() string { return c.Sum + artifactSuffix }

// code encodes the output of write, and returns the size and the hash of the result. It stores the
// result if keep is true.
func (s *Server) code(ctx context.Context, c coding, keep bool, write func(w io.Writer) error) (coded, error) {
	var body spool.Spool
	defer body.Close()
	sum := sha256.New()
	var size length
	to := io.MultiWriter(sum, &size)
	if keep {
		to = io.MultiWriter(sum, &size, &body)
	}
	buf := bufio.NewWriterSize(to, 64<<10)
	err := s.enc.stream(c, buf, func(w io.Writer) error { return write(&stoppable{ctx, w}) })
	if err == nil {
		err = buf.Flush()
	}
	if err != nil {
		return coded{}, fmt.Errorf("encode as %s: %w", codingTable[c].name, err)
	}
	out := coded{int64(size), hex.EncodeToString(sum.Sum(nil))}
	if !keep {
		return out, nil
	}
	r, err := body.Reader()
	if err != nil {
		return coded{}, err
	}
	return out, s.artifacts.Put(ctx, out.name(), r)
}

// rep returns the representation of the bytes. The parameter of is their coding, and plain is their
// size without coding, or 0 if unknown.
func (c *coded) rep(of coding, s *Server, plain int64) (*rep, error) {
	sum, err := hex.DecodeString(c.Sum)
	if err != nil {
		return nil, err
	}
	return &rep{
		coding: of, content: &blob{loss: loss{server: &s.damaged}, store: s.artifacts, name: c.name(), size: c.Size, sum: sum},
		size: c.Size, plain: plain, length: [1]string{strconv.FormatInt(c.Size, 10)},
	}, nil
}

// length is an [io.Writer] that counts bytes.
type length int64

func (n *length) Write(b []byte) (int, error) {
	*n += length(len(b))
	return len(b), nil
}

// stoppable is an [io.Writer] that fails after its context ends.
type stoppable struct {
	ctx context.Context
	w   io.Writer
}

func (s *stoppable) Write(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.w.Write(b)
}
