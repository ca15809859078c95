package wordpress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/jsonio"
)

// reply contains the header fields of an API response.
type reply struct {
	total int       // number of items in the complete list; -1 = unknown
	date  time.Time // time of the response according to the server's clock
}

// apiError is an unsuccessful response of the API.
type apiError struct {
	status *fetch.StatusError
	code   string // error code of WordPress, such as "rest_forbidden", or ""
	text   string
}

// Error returns "URL: 403 Forbidden: rest_forbidden: Sorry, you are not
// allowed".
func (e *apiError) Error() string {
	s := e.status.Error()
	for _, part := range []string{e.code, e.text} {
		if part != "" {
			s += ": " + part
		}
	}
	return s
}

// ErrorCode returns the error code of WordPress with hyphens, such as "rest-forbidden".
func (e *apiError) ErrorCode() string { return strings.ReplaceAll(e.code, "_", "-") }
func (e *apiError) Unwrap() error     { return e.status }

// do sends a request without credentials. The caller must close the response body.
func (s *Site) do(ctx context.Context, method, target string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	return fetch.Do(ctx, s.client, req)
}

// get sends a request to the API and decodes the response into v.
func (s *Site) get(ctx context.Context, target string, v any) (reply, error) {
	resp, err := s.do(ctx, http.MethodGet, target) //nolint:bodyclose // ReadBody closes it
	if err != nil {
		return reply{}, err
	}
	body, bodyErr := fetch.ReadBody(resp, s.max)
	if status, ok := errors.AsType[*fetch.StatusError](fetch.CheckStatus(resp)); ok {
		return reply{}, readError(status, body)
	}
	if bodyErr != nil {
		return reply{}, bodyErr
	}
	r := reply{total: -1, date: s.now()}
	if n, err := strconv.Atoi(resp.Header.Get("X-WP-Total")); err == nil && n >= 0 {
		r.total = n
	}
	if t, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		r.date = t
	}
	return r, decode(target, body, s.max, v)
}

// decode decodes a response. It skips a byte order mark, because a plugin file that was saved with
// one adds it to every response.
func decode(target string, body []byte, limit int64, v any) error {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\uFEFF")))
	if len(body) > 0 && body[0] != '{' && body[0] != '[' {
		code, what := "no-json", "not JSON: it starts with %q"
		if body[0] == '<' && !bytes.HasPrefix(body, []byte("<br")) {
			code, what = "html", "HTML instead of JSON: %q"
		}
		return &millrace.FormatError{URL: target, Code: code, Reason: fmt.Sprintf(what, start(string(body)))}
	}
	err := jsonio.Unmarshal(body, &jsonio.Limits{Size: limit, Depth: 128}, v)
	if fe, ok := errors.AsType[*millrace.FormatError](err); ok {
		fe.URL = target
		return fe
	}
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	return nil
}

// readError returns the error for an unsuccessful response. The error contains the message of
// WordPress.
func readError(status *fetch.StatusError, body []byte) error {
	e := &apiError{status: status}
	var reply struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if jsonio.Unmarshal(body, nil, &reply) == nil {
		e.code, e.text = start(reply.Code), start(plain(reply.Message))
	}
	return e
}

// start returns the first words of an untrusted text as one line.
func start(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= 120 {
		return s
	}
	n := 120
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// isStatus reports whether an error is a response with one of the given status codes.
func isStatus(err error, codes ...int) bool {
	e, ok := errors.AsType[*fetch.StatusError](err)
	if !ok {
		return false
	}
	for _, c := range codes {
		if e.Code == c {
			return true
		}
	}
	return false
}
