package fetch

import (
	"fmt"

	"github.com/millrace/millrace"
)

// SpentError is what a client with [Options.MaxReceived] gives once it has
// received that much. It is [millrace.ErrUnavailable]: another client may ask
// again.
type SpentError struct{ Limit int64 }

// Error gives "1000 bytes were received, which is the limit".
func (e *SpentError) Error() string {
	return fmt.Sprintf("%d bytes were received, which is the limit", e.Limit)
}

// Unwrap gives [millrace.ErrUnavailable].
func (e *SpentError) Unwrap() error { return millrace.ErrUnavailable }

// spent gives an error once the limit of the client is reached. What one
// buffer has brought above it is not taken back.
func (c *Client) spent() error {
	if c.maxReceived > 0 && c.stats.header.Load()+c.stats.body.Load() >= c.maxReceived {
		return &SpentError{c.maxReceived}
	}
	return nil
}
