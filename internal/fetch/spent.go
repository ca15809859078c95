package fetch

import (
	"fmt"

	"github.com/millrace/millrace"
)

// QuotaError is the error for a request whose client has received [Options.MaxReceived] bytes. It
// wraps [millrace.ErrUnavailable], because the request may succeed with another client.
type QuotaError struct{ Limit int64 }

// Error returns "limit of 1000 received bytes reached".
func (e *QuotaError) Error() string {
	return fmt.Sprintf("limit of %d received bytes reached", e.Limit)
}

// ErrorCode returns "byte-limit".
func (e *QuotaError) ErrorCode() string { return "byte-limit" }

// Unwrap returns [millrace.ErrUnavailable].
func (e *QuotaError) Unwrap() error { return millrace.ErrUnavailable }

// inFlightAllowance limits the bytes that requests in flight may still receive after the client's
// limit is reached. Without this allowance, a small limit could cut off every body.
const inFlightAllowance = 1 << 20

// spent returns an error after the client's limit is reached. over returns an error when requests
// in flight must also end. The last read may exceed both limits.
func (c *Client) spent() error { return c.received(c.maxReceived) }

func (c *Client) over() error {
	return c.received(c.maxReceived + min(c.maxReceived, inFlightAllowance))
}

func (c *Client) received(most int64) error {
	if c.maxReceived > 0 && c.stats.header.Load()+c.stats.body.Load() >= most {
		return &QuotaError{c.maxReceived}
	}
	return nil
}
