package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace"
)

const (
	robotsRedirects = 5       // RFC 9309, section 2.3.1.2
	maxRobotsRecord = 1 << 20 // bytes of JSON; base64 adds a third to the body
)

// robotsRecord is a stored robots.txt.
type robotsRecord struct {
	Time time.Time `json:"time"` // when the server last sent or confirmed the file
	Validators
	Body []byte `json:"body,omitempty"` // decoded body, at most maxRobots bytes
}

func (r *robotsRecord) len() int {
	if r == nil {
		return 0
	}
	return len(r.Body)
}

func (r *robotsRecord) validators() Validators {
	if r == nil {
		return Validators{}
	}
	return r.Validators
}

// robotsTransport is the transport of requests for robots.txt itself, including their redirects. It
// sets no limit for the body, because readRobots reads only the beginning of a large file.
type robotsTransport struct{ c *Client }

func (u robotsTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return u.c.exchange(req, 0, limits{body: math.MaxInt64, ratio: math.MaxInt64}, u.c.timeout, nil)
}

// askRobots fetches a robots.txt. The error is a *robotsFailure if the file cannot be fetched,
// and [millrace.ErrUnmodified], with a record that has only its time, if the file has not
// changed.
func askRobots(ctx context.Context, client *http.Client, file *url.URL, have Validators) (*robotsRecord, error) {
	moved := false
	follow := *client
	follow.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		moved = true
		return checkRedirect(robotsRedirects, req, via)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, file.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	req.Header.Set("Accept", "text/plain, */*;q=0.5")
	have.Set(req.Header)
	rec := &robotsRecord{Time: time.Now().UTC()}
	resp, err := Do(ctx, &follow, req)
	if err == nil {
		switch {
		case resp.StatusCode == http.StatusNotModified && have != Validators{}:
			_ = resp.Body.Close()
			return rec, millrace.ErrUnmodified
		case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
			err = CheckStatus(resp)
		case resp.StatusCode < 200 || resp.StatusCode >= 300:
			_ = resp.Body.Close()
			return rec, nil
		}
	}
	if err == nil {
		rec.Validators = ValidatorsOf(resp)
		rec.Body, err = readRobots(resp)
	} else if resp != nil {
		_ = resp.Body.Close()
	}
	if err == nil {
		return rec, nil
	}
	if away, ok := errors.AsType[*RedirectError](err); ok && !away.exists() {
		return rec, nil
	}
	if refused, ok := errors.AsType[*AddressError](err); ok && !moved {
		return nil, refused // a request for the page would also be refused
	}
	if _, ok := errors.AsType[*PauseError](err); ok {
		return nil, err
	}
	late := errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, millrace.ErrUnavailable)
	if ctx.Err() != nil || late {
		return nil, err
	}
	return nil, &robotsFailure{file: file, cause: err}
}

// readRobots reads the relevant part of the body and closes it.
func readRobots(resp *http.Response) ([]byte, error) {
	r, err := Decode(resp)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, maxRobots+1))
	if err != nil {
		return nil, err
	}
	return cutRobots(data), nil
}

// cutRobots returns the complete lines within the limit, because a part of a line could have
// another meaning.
func cutRobots(data []byte) []byte {
	if len(data) <= maxRobots {
		return data
	}
	return data[:bytes.LastIndexAny(data[:maxRobots], "\r\n")+1]
}
