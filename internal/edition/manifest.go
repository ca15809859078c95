package edition

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// manifestFormat moves when a manifest is read in another way. One of another
// format is not read: its documents are built anew.
const manifestFormat = 3

// manifest is what the store keeps of an edition's large documents, as JSON.
type manifest struct {
	Format    int             `json:"format"`
	Key       string          `json:"key"` // Options.Key of whoever built it
	Seq       uint64          `json:"seq"`
	Cursor    millrace.Cursor `json:"cursor"` // of the log at seq
	Documents []large         `json:"documents,omitempty"`
	Shelf     []shelved       `json:"shelf,omitempty"`
	// Gone are the paths of files that were withdrawn, and until when they answer
	// 410.
	Gone map[string]time.Time `json:"gone,omitempty"`
	// Again is when the files are to be made anew though no page has changed;
	// zero = never.
	Again time.Time `json:"again,omitzero"`

	// foreign: it was made under another key. It tells how old its documents
	// are, and nothing of it is served.
	foreign bool
}

// large is one large document as it was built.
type large struct {
	Room     string      `json:"room"`
	Path     string      `json:"path"`
	ETag     string      `json:"etag"`
	Own      bool        `json:"own,omitempty"` // ETag is the room's, not derived from the bytes
	OneTag   bool        `json:"one_tag,omitempty"`
	Public   bool        `json:"public,omitempty"`
	Names    int64       `json:"names,omitempty"` // see millrace.Document
	Header   http.Header `json:"header"`
	Modified time.Time   `json:"modified"`        // of Last-Modified
	Files    []file      `json:"files,omitempty"` // identity first; nil: Chunks
	Chunks   *chunked    `json:"chunks,omitempty"`
	// Keyed is the form for requests with a key, if it is another.
	Keyed *large `json:"keyed,omitempty"`
}

// document returns the large document at a path, nil if there is none.
func (m *manifest) document(path string) *large {
	if m != nil {
		for i := range m.Documents {
			if m.Documents[i].Path == path {
				return &m.Documents[i]
			}
		}
	}
	return nil
}

// tree returns the chunks of the document. It has none if d is nil.
func (d *large) tree() *tree {
	if d == nil || d.Chunks == nil {
		return new(tree)
	}
	return &d.Chunks.Tree
}

// made reports whether the document has bytes.
func (d *large) made() bool { return len(d.Files) > 0 || d.Chunks != nil }

// files gives those of both forms.
func (d *large) files() []file {
	if d.Keyed == nil {
		return d.Files
	}
	return slices.Concat(d.Files, d.Keyed.Files)
}

// file is one representation of a large document.
type file struct {
	Coding string `json:"coding"`
	Name   string `json:"name"` // in the directory; the SHA-256 of the identity bytes and the coding's suffix
	Size   int64  `json:"size"`
	SHA256 []byte `json:"sha256"` // of the coded bytes
}

// readManifest decodes a manifest and checks that it can be served from. One
// that was made under another key is given with the error.
func readManifest(b []byte, key string) (*manifest, error) {
	m := new(manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("manifest: %w: %w", millrace.ErrInvalid, err)
	}
	if m.foreign = m.Key != key; m.Format != manifestFormat || m.foreign {
		if m.Format != manifestFormat {
			m = nil
		}
		return m, fmt.Errorf("manifest: %w: made by another version or configuration", millrace.ErrConflict)
	}
	for _, d := range m.Documents {
		if !d.made() || d.Keyed != nil && !d.Keyed.made() {
			return nil, fmt.Errorf("manifest: %w: %s has no file", millrace.ErrInvalid, d.Path)
		}
		for _, f := range d.files() {
			c, ok := codingOf(f.Coding)
			switch {
			case !ok || f.Name != filepath.Base(f.Name) || len(f.SHA256) != sha256.Size || f.Size < 0:
				return nil, fmt.Errorf("manifest: %w: a file of %s", millrace.ErrInvalid, d.Path)
			case !strings.HasSuffix(f.Name, codingTable[c].suffix):
				return nil, fmt.Errorf("manifest: %w: %s was made by another encoder", millrace.ErrConflict, f.Name)
			}
		}
	}
	for _, f := range m.Shelf {
		if sum, err := hex.DecodeString(f.Sum); err != nil || len(sum) != sha256.Size || f.Size < 0 || f.ETag == "" {
			return nil, fmt.Errorf("manifest: %w: the file %s", millrace.ErrInvalid, f.Path)
		}
	}
	return m, nil
}

// entry makes the document ready to be answered with.
func (d *large) entry(p *Press, guarded bool, now time.Time) (key, *entry, error) {
	u, err := url.Parse(d.Path)
	if err != nil {
		return key{}, nil, fmt.Errorf("large document: %w: %w", millrace.ErrInvalid, err)
	}
	header := d.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	header.Set("Last-Modified", d.Modified.UTC().Format(http.TimeFormat))
	if d.Keyed != nil {
		header["Vary"] = []string{varied(header["Vary"])}
	}
	e, err := prepare(&millrace.Document{Path: d.Path, ETag: d.ETag, Header: header, OneTag: d.OneTag, Public: d.Public}, guarded, 0, now)
	if err != nil {
		return key{}, nil, err
	}
	e.about(&millrace.Document{Names: d.Names}, d.Room)
	e.key, e.dir, e.offer = keyOf(u), p.dir, 0
	if d.Chunks != nil {
		for _, c := range []coding{identity, gzipCoding} {
			r, err := d.Chunks.rep(c, p)
			if err != nil {
				return key{}, nil, err
			}
			e.offer |= 1 << c
			e.reps[c].Store(r)
		}
	}
	for _, f := range d.Files {
		c, _ := codingOf(f.Coding)
		e.offer |= 1 << c
		e.reps[c].Store(&rep{
			coding: c, file: f.Name, size: f.Size, plain: d.Files[0].Size, length: [1]string{strconv.FormatInt(f.Size, 10)},
			digest: [1]string{"sha-256=:" + base64.StdEncoding.EncodeToString(f.SHA256) + ":"},
		})
	}
	return e.key, e, nil
}

// there checks that every file of the document is there with its size; with
// deep, also that it has its bytes.
func (d *large) there(dir string, deep bool) error {
	for _, f := range d.files() {
		if err := f.there(dir, deep); err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
	}
	return nil
}

func (f *file) there(dir string, deep bool) error {
	r, err := os.Open(filepath.Join(dir, f.Name))
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.Size {
		return fmt.Errorf("%s has %d bytes, not %d", f.Name, info.Size(), f.Size)
	}
	if !deep {
		return nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return err
	}
	if string(sum.Sum(nil)) != string(f.SHA256) {
		return fmt.Errorf("%s is damaged", f.Name)
	}
	return nil
}
