package mcp

import (
	"context"
	"errors"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is the maximum size of a message on a pipe in bytes.
const maxLine = 1 << 20

// Run serves one client that sends and receives messages as lines. It returns nil when the client
// closes the input, or the context ends.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	err := s.sdk.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: open{out}, MaxLineLength: maxLine})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil //nolint:nilerr // a client may disconnect at any time
	}
	return err
}

// open is a writer whose Close does nothing, because the caller closes the underlying writer.
type open struct{ io.Writer }

// Close implements [io.Closer].
func (open) Close() error { return nil }
