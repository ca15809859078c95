package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

const (
	maxHops   = 5
	maxAnswer = 64 << 10 // bytes of an answer that are read, so that its connection can be used again
	formType  = "application/x-www-form-urlencoded"
)

// post posts a body, and follows the redirects that keep it one (WebSub, section
// 5.1.1: 307 and 308). Any 2xx is a success; errors are those of
// [fetch.CheckStatus] and of the client.
func post(ctx context.Context, client *http.Client, target, contentType string, body []byte) error {
	client = fetch.NoRedirects(client)
	for range maxHops + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
		}
		req.Header.Set("Content-Type", contentType)
		resp, err := client.Do(req)
		if err != nil {
			if failed, ok := errors.AsType[*url.Error](err); ok {
				err = failed.Err
			}
			return err
		}
		_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusPermanentRedirect {
			to, err := fetch.RedirectTarget(resp)
			if err != nil {
				return err
			}
			if to != nil {
				target = to.String()
				continue
			}
		}
		return fetch.CheckStatus(resp)
	}
	return fmt.Errorf("%s: more than %d redirects: %w", target, maxHops, millrace.ErrInvalid)
}

// hidden takes the query of a URL that is posted to out of a text about it, such
// as the URL itself: it may be a secret.
func hidden(text, endpoint string) string {
	if _, query, ok := strings.Cut(endpoint, "?"); ok && query != "" {
		return strings.ReplaceAll(text, "?"+query, "?(hidden)")
	}
	return text
}

// checkEndpoint gives a URL that is posted to in the form in which it is used.
func checkEndpoint(what, raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: it is no URL: %w", what, millrace.ErrInvalid)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		shown := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
		return "", fmt.Errorf("%s %q: write http:// or https:// in front of a host: %w", what, shown, millrace.ErrInvalid)
	case u.User != nil:
		return "", fmt.Errorf("%s at %s: a URL that carries credentials is not posted to: %w", what, u.Host, millrace.ErrInvalid)
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String(), nil
}
