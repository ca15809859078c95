package edition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/dcz"
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
	// check reads an artifact that is not in seen, and reports whether it could read the artifact.
	// For an artifact in seen, it returns false.
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
				err = fmt.Errorf("%w: checksum or size does not match: %d bytes, want %d", millrace.ErrInvalid, n, size)
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

// VerifyOthers reads the artifacts that are not in seen, and adds them to seen: dictionaries, and
// artifacts that no edition needs any more. Each of them is verified by the hash in its name. See
// [Verify].
func VerifyOthers(ctx context.Context, artifacts artifact.Store, repair bool, seen map[string]bool, damaged func(name string, err error)) error {
	s := &Server{artifacts: keeping{artifacts}, cache: newCache(1)}
	for info, err := range artifacts.List(ctx, "") {
		if err == nil && !seen[info.Name] {
			seen[info.Name] = true
			err = s.verifyName(ctx, info.Name)
		}
		if errors.Is(err, millrace.ErrInvalid) && ctx.Err() == nil {
			damaged(info.Name, err)
			if err = nil; repair {
				err = artifacts.Delete(ctx, info.Name)
			}
		}
		if err != nil && !errors.Is(err, millrace.ErrNotFound) { // the artifact was deleted in the meantime, or is a version whose chunks were deleted
			return err
		}
	}
	return nil
}

// verifyName reads an artifact and verifies the hash in its name. It accepts artifacts with unknown
// names.
func (s *Server) verifyName(ctx context.Context, name string) error {
	if id, ok := strings.CutPrefix(name, pairPrefix); ok {
		return s.verifyPair(ctx, name, id)
	}
	for _, kind := range []struct{ prefix, suffix string }{{dictionaryPrefix, ""}, {versionPrefix, ""}, {"", chunkSuffix}, {"", nodeSuffix}, {"", artifactSuffix}} {
		want, starts := strings.CutPrefix(name, kind.prefix)
		want, ends := strings.CutSuffix(want, kind.suffix)
		if !starts || !ends {
			continue
		}
		sum := sha256.New()
		if err := s.hashContent(ctx, sum, name); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != want {
			return fmt.Errorf("%w: checksum mismatch", millrace.ErrInvalid)
		}
		return nil
	}
	return nil
}

// hashContent writes to sum the bytes that the hash in the name of an artifact covers.
func (s *Server) hashContent(ctx context.Context, sum hash.Hash, name string) error {
	if strings.HasPrefix(name, versionPrefix) {
		body, err := s.readVersion(ctx, name)
		_, _ = sum.Write(body)
		return err
	}
	r, err := s.artifacts.Open(ctx, name, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close()
	if !strings.HasSuffix(name, chunkSuffix) {
		_, err = io.Copy(sum, r)
		return err
	}
	coded, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	_ = s.enc.inflate(sum, append(coded, gzipEnd...)) // damage changes the hash
	return nil
}

// verifyPair decodes a document that is coded against a dictionary, if the store has the dictionary.
// id begins with the ID of the dictionary.
func (s *Server) verifyPair(ctx context.Context, name, id string) error {
	of, _, _ := strings.Cut(id, "-")
	raw, err := hex.DecodeString(of)
	if err != nil || len(raw) != len(dcz.ID{}) {
		return nil //nolint:nilerr // not the name of a pair
	}
	dict, err := s.dictionary(ctx, dcz.ID(raw))
	if unreadable(err) {
		return nil // a damaged dictionary is reported separately
	}
	if err != nil {
		return err
	}
	body, err := s.artifacts.Open(ctx, name, 0, -1)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := dcz.NewReader(body, dict, dcz.ID(raw))
	if err == nil {
		defer r.Close()
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	return err
}
