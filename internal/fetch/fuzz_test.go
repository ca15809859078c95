package fetch

import (
	"bytes"
	stdgzip "compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"testing"
)

// FuzzReadBody decodes arbitrary input. An accepted body is within the limits, matches its
// digest, and equals the result of the standard library.
func FuzzReadBody(f *testing.F) {
	for _, codings := range [][]string{{}, {"gzip"}, {"br"}, {"zstd"}, {"gzip", "zstd"}, {"br", "gzip"}} {
		label := ""
		for _, c := range codings {
			label += c + ","
		}
		body := encode(f, prose+prose+prose, codings...)
		f.Add([]byte(body), label, sha256Digest(body))
		f.Add([]byte(body), "gzip", sha512Digest(body))
		f.Add([]byte(body)[:len(body)/2], label, "")
		f.Add([]byte(body+body), label, "sha-256=:AA==:;a, sha-512=")
	}
	f.Fuzz(func(t *testing.T, coded []byte, coding, digest string) {
		const limit = 4 << 20
		resp := response(string(coded), "Content-Encoding", coding, "Content-Digest", digest)
		got, err := ReadBody(resp, limit)
		if err != nil {
			if _, ok := errors.AsType[*BodyError](err); !ok || got != nil {
				t.Fatalf("%d bytes, %T %v", len(got), err, err)
			}
			return
		}
		if len(got) > limit || len(got) > ratioFloor && len(got) > 101*len(coded) {
			t.Fatalf("%d bytes of %d", len(got), len(coded))
		}
		sum := sha256.Sum256(coded)
		for _, d := range digests(resp.StatusCode, resp.Header) {
			if d.name == "sha-256" && !bytes.Equal(d.want, sum[:]) {
				t.Fatalf("accepted with %s, has %s", digest, base64.StdEncoding.EncodeToString(sum[:]))
			}
		}
		switch {
		case coding == "":
			if !bytes.Equal(got, coded) {
				t.Fatal("changed without a coding")
			}
		case coding == "gzip" && !bytes.Equal(got, coded):
			z, err := stdgzip.NewReader(bytes.NewReader(coded))
			if err != nil {
				t.Fatal(err)
			}
			want, err := io.ReadAll(z)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, want %d: %v", len(got), len(want), err)
			}
		}
	})
}
