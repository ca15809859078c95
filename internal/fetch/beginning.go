package fetch

import (
	"errors"
	"io"
	"net/http"
)

// Beginning is the first part of a response body.
type Beginning struct {
	Content []byte // decoded bytes
	Read    int64  // number of coded bytes from which Content was decoded
	// Size is the size of the whole coded body in bytes, at most 16 GiB. It is -1 if unknown,
	// because the body is longer than the part read and the server sends no length.
	Size     int64
	Complete bool // Content is the whole body, verified as by [Decode]
}

// contentPerByte limits the decoded bytes per coded byte of a beginning.
const contentPerByte = 32

// ReadBeginning reads at most n coded bytes of the body of resp, decodes them and closes the
// body. Unless the result is Complete, nothing is verified, and Content may end anywhere.
func ReadBeginning(resp *http.Response, n int64) (*Beginning, error) {
	c, err := decode(resp, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	c.src.r = &cutter{src: c.src, r: c.src.r, most: n}
	content, err := io.ReadAll(io.LimitReader(c, n*contentPerByte))
	b := &Beginning{Content: content, Read: c.src.n, Size: min(c.src.want, 16<<30)}
	switch {
	case errors.Is(err, errCut):
	case err != nil:
		return nil, err
	default:
		b.Complete = int64(len(content)) < n*contentPerByte
	}
	if b.Complete && b.Size < 0 {
		b.Size = b.Read
	}
	return b, nil
}

var errCut = errors.New("read limit reached")

// cutter ends a body after a number of bytes.
type cutter struct {
	src  *source
	r    io.Reader
	most int64
}

func (c *cutter) Read(p []byte) (int, error) {
	left := c.most - c.src.n
	switch {
	case left > 0:
		return c.r.Read(p[:min(int64(len(p)), left)])
	case c.src.n == c.src.want:
		return 0, io.EOF
	}
	return 0, errCut
}
