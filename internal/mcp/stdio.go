package mcp

import (
	"context"
	"errors"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is the most bytes of a message on a pipe.
const maxLine = 1 << 20

// Run talks with one client by lines: what it reads are its requests, and what
// it writes is the protocol alone. It ends when the client has closed its end,
// or with the context, without an error.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	err := s.sdk.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: open{out}, MaxLineLength: maxLine})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil //nolint:nilerr // a client that goes is no failure
	}
	return err
}

// open is a writer that somebody else closes.
type open struct{ io.Writer }

// Close does nothing.
func (open) Close() error { return nil }
