package fetch

import (
	"fmt"

	"github.com/millrace/millrace"
)

// SpentError is what a client with [Options.MaxReceived] gives once it has
// received that much. It is [millrace.ErrUnavailable]: another client may ask
// again.
type SpentError struct{ Limit int64 }

// Error returns "1000 bytes were received, which is the limit".
func (e *SpentError) Error() string {
	return fmt.Sprintf("%d bytes were received, which is the limit", e.Limit)
}

// ErrorCode returns "byte-limit".
func (e *SpentError) ErrorCode() string { return "byte-limit" }

// Unwrap returns [millrace.ErrUnavailable].
func (e *SpentError) Unwrap() error { return millrace.ErrUnavailable }

// comingHome is how many bytes of what is under way still come when the limit of
// the client is reached, so that a small one is not used up by bodies of which
// none is whole.
const comingHome = 1 << 20

// spent returns an error once the limit of the client is reached, and over once
// so much is that what is under way ends, too. What one buffer has brought
// above it is not taken back.
func (c *Client) spent() error { return c.received(c.maxReceived) }

func (c *Client) over() error { return c.received(c.maxReceived + min(c.maxReceived, comingHome)) }

func (c *Client) received(most int64) error {
	if c.maxReceived > 0 && c.stats.header.Load()+c.stats.body.Load() >= most {
		return &SpentError{c.maxReceived}
	}
	return nil
}
