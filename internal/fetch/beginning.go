package fetch

import (
	"errors"
	"io"
	"net/http"
)

// Beginning is how the body of a response begins.
type Beginning struct {
	Content []byte // decoded
	Read    int64  // bytes of the body that Content is of, as they were sent
	// Size is how many bytes the whole body has as it is sent, at most 16 GiB; -1
	// if that is not known: it goes on, and the server does not say how far.
	Size     int64
	Complete bool // Content is all of it, verified as [Decode] does
}

// contentPerByte bounds the content of a beginning, in times of its coded bytes.
const contentPerByte = 32

// ReadBeginning reads and decodes at most n bytes of the body of resp, as they
// are sent, and closes it. Unless it is whole, nothing is verified, and the
// content may end anywhere.
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

var errCut = errors.New("no more is read")

// cutter ends a body after so many bytes of it.
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
