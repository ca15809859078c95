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
	// maxCuts is how often a text that is too long is halved: an eighth of
	// the longest passage fits every model.
	maxCuts = 3
	// maxEmbedRetryAfter is the longest wait that a server is granted.
	maxEmbedRetryAfter = time.Minute
	// maxVectorJSON bounds an answer: 8,192 dimensions, 32 characters each.
	maxVectorJSON = 256 << 10
	maxComplaint  = 300 // bytes of a refusal's text that an error repeats
)

// refused is an answer that another attempt at the same request will not
// change.
type refused struct {
	status    int
	complaint string // of the server
	err       error  // a sentinel
}

func (r *refused) Error() string {
	text := "status " + strconv.Itoa(r.status)
	if r.complaint != "" {
		text += fmt.Sprintf(" (%q)", r.complaint)
	}
	return text + ": " + r.err.Error()
}

// ErrorCode returns the status, as that of fetch.StatusError.
func (r *refused) ErrorCode() string { return "http-" + strconv.Itoa(r.status) }
func (r *refused) Unwrap() error     { return r.err }

// tooLarge says whether less input may help. Servers say 413, 400 or 422 for
// a text over their context as well as for too many texts.
func (r *refused) tooLarge() bool {
	return r.status == http.StatusRequestEntityTooLarge || r.status == http.StatusBadRequest ||
		r.status == http.StatusUnprocessableEntity
}

// batch returns the vectors of input, one batch.
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

// shorten returns at most n bytes of s, in whole characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// attempts asks until there is an answer, or no hope for one.
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
			return nil, millrace.Coded("retry-after", fmt.Errorf("it wants to be left alone for %s: %w", after, err))
		}
		// Less up to a half, so that several clients do not come back at once.
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

// ask makes one request. after is what the server wants to be waited.
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

// lost is for a failure of the connection.
func (e *Embedder) lost(ctx context.Context, err error, timeout time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.Timeout() {
			return fmt.Errorf("no answer in %s: %w", timeout, millrace.Coded("timeout-answer", millrace.ErrUnavailable))
		}
		err = u.Err // it repeats the URL, with all that is secret in it
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no whole answer in %s: %w", timeout, millrace.Coded("timeout-whole", millrace.ErrUnavailable))
	}
	return fmt.Errorf("%s: %w", e.hide(err.Error()), millrace.ErrUnavailable)
}

// refusal says why there is no answer, in the server's words.
func (e *Embedder) refusal(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	complaint := string(text)
	if json.Unmarshal(text, &said) == nil && len(said.Error) > 0 {
		var message struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(said.Error, &complaint) != nil && json.Unmarshal(said.Error, &message) == nil {
			complaint = message.Message
		}
	}
	complaint = e.hide(strings.Join(strings.Fields(strings.ToValidUTF8(complaint, "\uFFFD")), " "))
	err := millrace.StatusErr(resp.StatusCode)
	switch {
	case resp.StatusCode == http.StatusRequestEntityTooLarge:
		err = millrace.ErrTooLarge
	case err == nil, errors.Is(err, millrace.ErrUnmodified):
		err = millrace.ErrInvalid // such as 204: no answer to this request
	}
	return &refused{resp.StatusCode, shorten(complaint, maxComplaint), err}
}

// retryAfter reads the header of that name (RFC 9110, section 10.2.3), seconds
// only: servers of models send no dates.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(h.Get("Retry-After")), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
