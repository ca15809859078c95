package fetch

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// hexes returns n bytes of text that content codings compress to about half.
func hexes(n int) string {
	r := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", r.Uint32())
	}
	return b.String()[:n]
}

func TestReadBeginning(t *testing.T) {
	text := hexes(400_000)
	for _, coding := range []string{"", "gzip", "br", "zstd"} {
		body := text
		var header []string
		if coding != "" {
			body, header = encode(t, text, coding), []string{"Content-Encoding", coding}
		}
		for _, known := range []bool{true, false} {
			for _, n := range []int{10_000, 150_000, len(body), 1 << 20} {
				name := fmt.Sprintf("%q, %d of %d bytes, length known: %t", coding, n, len(body), known)
				resp := response(body, append(header, "Content-Digest", sha256Digest(body))...)
				if known {
					resp.ContentLength = int64(len(body))
				}
				b, err := ReadBeginning(resp, int64(n))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				complete := n > len(body) || n == len(body) && known
				size := int64(-1)
				if known || complete {
					size = int64(len(body))
				}
				if b.Complete != complete || b.Size != size || b.Read > int64(n) || complete && b.Read != size {
					t.Errorf("%s: whole %t, %d of %d", name, b.Complete, b.Read, b.Size)
				}
				if !strings.HasPrefix(text, string(b.Content)) || complete && len(b.Content) != len(text) {
					t.Errorf("%s: the content has %d bytes, and is different", name, len(b.Content))
				}
				if !complete && n >= 150_000 && len(b.Content) < n/2 { // decoders return whole blocks
					t.Errorf("%s: only %[3]d of %[2]d bytes", name, b.Read, len(b.Content))
				}
			}
		}
	}
}

// TestReadBeginningOfBadBodies verifies that a body that expands too much is truncated, and that a
// corrupt or mislabeled body is an error.
func TestReadBeginningOfBadBodies(t *testing.T) {
	zeros := encode(t, strings.Repeat("0", 20<<20), "gzip")
	if b, err := ReadBeginning(response(zeros, "Content-Encoding", "gzip"), 10_000); err == nil && (b.Complete || len(b.Content) > 10_000*contentPerByte) {
		t.Errorf("%d bytes of content, whole %t", len(b.Content), b.Complete)
	}
	broken := []byte(encode(t, hexes(100_000), "gzip"))
	for i := range 100 {
		broken[1000+i] ^= 0x55
	}
	for name, c := range map[string]struct {
		body string
		head []string
		want error
	}{
		"a broken coding":  {string(broken), []string{"Content-Encoding", "gzip"}, millrace.ErrInvalid},
		"an unknown one":   {"\x01\x02\x03", []string{"Content-Encoding", "mill"}, millrace.ErrInvalid},
		"another digest":   {"text", []string{"Content-Digest", sha256Digest("other")}, millrace.ErrInvalid},
		"a broken network": {"", nil, io.ErrClosedPipe},
	} {
		resp := response(c.body, c.head...)
		if c.body == "" {
			r, w := io.Pipe()
			_ = w.CloseWithError(io.ErrClosedPipe)
			resp.Body = r
		}
		if b, err := ReadBeginning(resp, 1<<20); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
	resp := response("short")
	resp.ContentLength = 10
	if b, err := ReadBeginning(resp, 100); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("truncated: %+v, %v", b, err)
	}
}

// FuzzReadBeginning verifies that the result is bounded for any body.
func FuzzReadBeginning(f *testing.F) {
	f.Add([]byte("text"), "", uint16(2))
	f.Add([]byte(encode(f, hexes(5000), "gzip")), "gzip", uint16(1000))
	f.Add([]byte(encode(f, hexes(5000), "br")), "br", uint16(1000))
	f.Add([]byte(encode(f, strings.Repeat("0", 1<<20), "zstd")), "zstd", uint16(10))
	f.Fuzz(func(t *testing.T, body []byte, coding string, n uint16) {
		b, err := ReadBeginning(response(string(body), "Content-Encoding", coding), int64(n)+1)
		if err != nil {
			return
		}
		if b.Read > int64(n)+1+4096 || len(b.Content) > (int(n)+1)*contentPerByte || b.Complete && b.Size != int64(len(body)) {
			t.Fatalf("%d bytes of %d, %d of content, whole %t, size %d", b.Read, len(body), len(b.Content), b.Complete, b.Size)
		}
	})
}
