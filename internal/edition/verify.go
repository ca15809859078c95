package edition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// Verify reads the artifacts of a manifest, except those in seen, and adds them to seen. It calls
// damaged for each artifact that is missing or damaged. If repair is set, it deletes damaged
// artifacts, so that a server builds them again.
func Verify(ctx context.Context, artifacts artifact.Store, manifest []byte, repair bool, seen map[string]bool, damaged func(name string, err error)) error {
	m, err := decodeManifest(manifest)
	if err != nil {
		return err
	}
	if !repair {
		artifacts = keeping{artifacts}
	}
	// check checks an artifact unless it was checked before, and reports whether the artifact is
	// readable.
	check := func(name string, read func() error) (bool, error) {
		if seen[name] {
			return false, nil
		}
		seen[name] = true
		err := read()
		if err != nil && unreadable(err) && ctx.Err() == nil {
			damaged(name, err)
			return false, artifacts.Delete(ctx, name)
		}
		return err == nil, err
	}
	sums := func(name string, size int64, sum hash.Hash, want string) error {
		_, err := check(name, func() error {
			r, err := artifacts.Open(ctx, name, 0, -1)
			if err != nil {
				return err
			}
			defer r.Close()
			n, err := io.Copy(sum, r)
			if err == nil && (n != size || hex.EncodeToString(sum.Sum(nil)) != want) {
				err = fmt.Errorf("%w: checksum mismatch of %d bytes, want %d bytes", millrace.ErrInvalid, n, size)
			}
			return err
		})
		return err
	}
	var visit func(b *branch, height int) error
	visit = func(b *branch, height int) error {
		if height == 0 {
			return sums(b.chunk(), b.Coded, crc32.NewIEEE(), fmt.Sprintf("%08x", b.CodedCRC))
		}
		var below []branch
		ok, err := check(b.node(), func() (err error) { below, err = children(ctx, artifacts, b); return err })
		for i := 0; ok && err == nil && i < len(below); i++ {
			err = visit(&below[i], height-1)
		}
		return err
	}
	for i := range m.Documents {
		for d := &m.Documents[i]; d != nil; d = d.Keyed {
			if d.Chunks.Tree.Root.Parts > 0 {
				if err := visit(&d.Chunks.Tree.Root, d.Chunks.Tree.Height); err != nil {
					return err
				}
			}
			if d.Brotli != nil {
				if err := sums(d.Brotli.name(), d.Brotli.Size, sha256.New(), d.Brotli.Sum); err != nil {
					return err
				}
			}
		}
	}
	for i := range m.Artifacts {
		if c := m.Artifacts[i].stored(); err == nil {
			err = sums(c.name(), c.Size, sha256.New(), c.Sum)
		}
	}
	return err
}

// keeping is an artifact store that deletes nothing.
type keeping struct{ artifact.Store }

// Delete implements [artifact.Store].
func (keeping) Delete(context.Context, string) error { return nil }
