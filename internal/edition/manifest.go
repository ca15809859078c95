package edition

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
)

// manifestFormat is the version of the manifest's format. If a manifest has another format, its
// documents are built again.
const manifestFormat = 6

// manifest lists the large documents and artifacts of an edition. The store contains it as JSON.
// The JSON is compressed with zstd, because every edition writes it, and it may be large: 2 MB for
// a site with 1,000,000 pages and 3,000 sections in llms.txt.
type manifest struct {
	Format    int              `json:"format"`
	Key       string           `json:"key"`     // Server.key of the process that built the manifest
	Version   string           `json:"version"` // Options.Version of that process
	Seq       uint64           `json:"seq"`
	Cursor    millrace.Cursor  `json:"cursor"` // cursor of the publication's log at Seq
	Title     string           `json:"title"`  // title of the site
	Documents []large          `json:"documents,omitempty"`
	Artifacts []storedArtifact `json:"artifacts,omitempty"`
	// Gone contains the withdrawn artifacts by path.
	Gone map[string]withdrawn `json:"gone,omitempty"`
	// Again is the time at which artifacts must be built again even if no page changes; zero =
	// never.
	Again time.Time `json:"again,omitzero"`

	byPath map[string]*large // large documents by path; see index

	// foreign reports that a process with another key built the manifest. Its documents are not
	// served, but their modification times are used.
	foreign bool
}

// large is a large document in a manifest.
type large struct {
	Protocol   string      `json:"protocol"`
	Path       string      `json:"path"`
	ETag       string      `json:"etag"`
	SharedETag bool        `json:"shared_etag,omitempty"`
	DigestETag bool        `json:"digest_etag,omitempty"`
	Public     bool        `json:"public,omitempty"`
	PageCount  int64       `json:"names,omitempty"` // see millrace.Document
	Header     http.Header `json:"header"`
	Modified   time.Time   `json:"modified"` // value of Last-Modified
	Chunks     chunked     `json:"chunks"`
	Brotli     *coded      `json:"br,omitempty"` // nil = not offered
	// Keyed is the document for requests with a key. If nil, they get the same document as other
	// requests.
	Keyed *large `json:"keyed,omitempty"`
}

// index builds byPath, which the method document uses. m.Documents must not change afterwards.
func (m *manifest) index() {
	m.byPath = make(map[string]*large, len(m.Documents))
	for i := range m.Documents {
		m.byPath[m.Documents[i].Path] = &m.Documents[i]
	}
}

// document returns the large document at a path, or nil.
func (m *manifest) document(path string) *large {
	if m == nil {
		return nil
	}
	return m.byPath[path]
}

// tree returns the chunks of the document. If d is nil, the tree is empty.
func (d *large) tree() *tree {
	if d == nil {
		return new(tree)
	}
	return &d.Chunks.Tree
}

// errForeign is the error for a manifest of another configuration or format.
var errForeign = fmt.Errorf("built with another configuration: %w", millrace.ErrConflict)

// maxManifest is the maximum size of a decoded manifest in bytes.
const maxManifest = 1 << 30

// encode returns the manifest in its stored form.
func (m *manifest) encode(e *encoders) ([]byte, error) {
	raw, err := json.Marshal(m)
	if err == nil {
		raw, err = e.encode(zstdCoding, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return raw, nil
}

// decodeManifest decodes a manifest in its stored form. It does not validate the manifest.
func decodeManifest(b []byte) (*manifest, error) {
	m := new(manifest)
	r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err == nil {
		defer r.Close()
		err = json.NewDecoder(io.LimitReader(r, maxManifest)).Decode(m)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w: %w", millrace.ErrInvalid, err)
	}
	m.index()
	return m, nil
}

// readManifest decodes a manifest and checks that it can be served. If it returns errForeign, it
// also returns the manifest if the format is supported.
func readManifest(b []byte, key string) (*manifest, error) {
	m, err := decodeManifest(b)
	if err != nil {
		return nil, err
	}
	if m.foreign = m.Key != key; m.Format != manifestFormat || m.foreign {
		if m.Format != manifestFormat {
			m = nil
		}
		return m, fmt.Errorf("manifest: %w", errForeign)
	}
	for _, f := range m.Artifacts {
		if sum, err := hex.DecodeString(f.Sum); err != nil || len(sum) != sha256.Size || f.Size < 0 || f.ETag == "" {
			return nil, fmt.Errorf("manifest: %w: artifact %s", millrace.ErrInvalid, f.Path)
		}
	}
	return m, nil
}

// entry returns the key and the entry of the document.
func (d *large) entry(s *Server, guarded bool, now time.Time) (key, *entry, error) {
	u, err := url.Parse(d.Path)
	if err != nil {
		return key{}, nil, fmt.Errorf("large document: %w: %w", millrace.ErrInvalid, err)
	}
	header := d.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	header.Set("Last-Modified", d.Modified.UTC().Format(http.TimeFormat))
	e, err := prepare(&millrace.Document{Path: d.Path, ETag: d.ETag, Header: header, SharedETag: d.SharedETag, DigestETag: d.DigestETag, Subject: millrace.Subject{Public: d.Public}}, guarded, 0, now)
	if err != nil {
		return key{}, nil, err
	}
	if d.Keyed != nil { // another entry has the bytes for requests with a key, so this one stays shared
		e.shape.all = addVary(e.shape.all, "Authorization")
	}
	e.setSubject(&millrace.Subject{PageCount: d.PageCount}, d.Protocol)
	e.key, e.large, e.offer, e.signer = keyOf(u), true, 0, s.signer
	for _, c := range []coding{identity, gzipCoding} {
		if d.DigestETag && c != identity {
			continue
		}
		r, err := d.Chunks.rep(c, s)
		if err != nil {
			return key{}, nil, err
		}
		b := r.content.(*bodies)
		if b.path = d.Path; d.DigestETag {
			b.sum.Store(new(digestOf(d.ETag)))
		}
		e.offer |= 1 << c
		e.reps[c].Store(r)
	}
	if d.Brotli != nil {
		r, err := d.Brotli.rep(brotliCoding, s, d.Chunks.size())
		if err != nil {
			return key{}, nil, err
		}
		e.offer |= 1 << brotliCoding
		e.reps[brotliCoding].Store(r)
	}
	return e.key, e, nil
}
