package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

const (
	// maxCuts is the maximum number of times that Embed halves a long text. An eighth of the
	// longest passage is short enough for every model.
	maxCuts = 3
	// maxEmbedRetryAfter is the maximum wait that a server can demand.
	maxEmbedRetryAfter = time.Minute
	// maxVectorJSON limits a response: 8,192 dimensions of 32 characters.
	maxVectorJSON = 256 << 10
	maxComplaint  = 300 // maximum number of bytes of a server's error text to include in an error
)

// refused is the error for a response with a status other than 200.
type refused struct {
	status    int
	complaint string // the server's error text
	err       error  // a sentinel error
}

func (r *refused) Error() string {
	text := "status " + strconv.Itoa(r.status)
	if r.complaint != "" {
		text += fmt.Sprintf(" (%q)", r.complaint)
	}
	return text + ": " + r.err.Error()
}

// ErrorCode returns the code of the status, like fetch.StatusError.
func (r *refused) ErrorCode() string { return "http-" + strconv.Itoa(r.status) }
func (r *refused) Unwrap() error     { return r.err }

// tooLarge reports whether a smaller input may help. Servers send 413, 400 or 422 for a
// text that is too long and for too many texts.
func (r *refused) tooLarge() bool {
	return r.status == http.StatusRequestEntityTooLarge || r.status == http.StatusBadRequest ||
		r.status == http.StatusUnprocessableEntity
}

// batch returns the vectors of one batch. If the server rejects the batch as too large, it sends
// smaller batches or a shorter text.
func (e *Embedder) batch(ctx context.Context, j *job, input []string) ([][]float32, error) {
	for cuts := 0; ; cuts++ {
		vectors, err := e.attempts(ctx, j, input)
		r, ok := errors.AsType[*refused](err)
		if !ok || !r.tooLarge() {
			return vectors, err
		}
		if len(input) > 1 {
			half := len(input) / 2
			left, err := e.batch(ctx, j, input[:half])
			if err != nil {
				return nil, err
			}
			right, err := e.batch(ctx, j, input[half:])
			return append(left, right...), err
		}
		if cuts == maxCuts || len(input[0]) < 200 {
			return nil, err
		}
		input = []string{shorten(input[0], len(input[0])/2)}
	}
}

// shorten returns at most n bytes of s, cut between characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// attempts sends a request until it succeeds, a retry would not help, or no retries are left.
func (e *Embedder) attempts(ctx context.Context, j *job, input []string) ([][]float32, error) {
	wait := e.o.Backoff
	for attempt := 0; ; attempt++ {
		vectors, after, err := e.ask(ctx, j, input)
		if err == nil || ctx.Err() != nil || !errors.Is(err, millrace.ErrUnavailable) {
			return vectors, err
		}
		if j.query || attempt >= e.o.Retries {
			if attempt > 0 {
				err = fmt.Errorf("gave up after %d attempts: %w", attempt+1, err)
			}
			return nil, err
		}
		if after > maxEmbedRetryAfter {
			return nil, millrace.Coded("retry-after", fmt.Errorf("the server sent a Retry-After of %s: %w", after, err))
		}
		// Jitter of up to half the wait keeps clients from retrying at the same time.
		pause := wait - time.Duration(rand.Int64N(int64(wait/2)+1))
		if err := e.wait(ctx, max(after, pause)); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask sends one request. after is the wait that the server demands.
func (e *Embedder) ask(ctx context.Context, j *job, input []string) (_ [][]float32, after time.Duration, _ error) {
	body, err := json.Marshal(embeddingsRequest{Model: e.model, Input: input, Format: "float", Dimensions: e.o.Dimensions})
	if err != nil {
		return nil, 0, err
	}
	timeout := e.o.Timeout
	if j.query {
		timeout = e.o.QueryTimeout
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(asking, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	e.authorize(req)
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, 0, e.lost(ctx, err, timeout)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, retryAfter(resp.Header), e.refusal(resp)
	}
	vectors, err := decodeEmbeddings(resp.Body, len(input), &j.size)
	if err != nil && !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
		err = e.lost(ctx, err, timeout)
	}
	return vectors, 0, err
}

// lost returns the error for a request that failed without a complete response.
func (e *Embedder) lost(ctx context.Context, err error, timeout time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.Timeout() {
			return fmt.Errorf("no response within %s: %w", timeout, millrace.Coded("timeout-response", millrace.ErrUnavailable))
		}
		err = u.Err // u contains the URL with its secrets
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no complete response within %s: %w", timeout, millrace.Coded("timeout-total", millrace.ErrUnavailable))
	}
	return fmt.Errorf("%s: %w", e.hide(err.Error()), millrace.ErrUnavailable)
}

// refusal returns the error for a response with a status other than 200.
func (e *Embedder) refusal(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	var reply struct {
		Error json.RawMessage `json:"error"`
	}
	complaint := string(text)
	if json.Unmarshal(text, &reply) == nil && len(reply.Error) > 0 {
		var message struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(reply.Error, &complaint) != nil && json.Unmarshal(reply.Error, &message) == nil {
			complaint = message.Message
		}
	}
	complaint = e.hide(strings.Join(strings.Fields(strings.ToValidUTF8(complaint, "\uFFFD")), " "))
	err := millrace.StatusErr(resp.StatusCode)
	switch {
	case resp.StatusCode == http.StatusRequestEntityTooLarge:
		err = millrace.ErrTooLarge
	case err == nil, errors.Is(err, millrace.ErrUnmodified):
		err = millrace.ErrInvalid // for example, a 204, which is not a valid response to this request
	}
	return &refused{resp.StatusCode, shorten(complaint, maxComplaint), err}
}

// retryAfter parses the Retry-After header (RFC 9110, section 10.2.3). It parses only seconds,
// because model servers send no dates.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(h.Get("Retry-After")), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
