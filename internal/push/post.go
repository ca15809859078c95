package push

import (
	"context"
	"fmt"
	"net/http"

	"github.com/millrace/millrace/internal/fetch"
)

const (
	maxHops  = 5
	formType = "application/x-www-form-urlencoded"
)

// post posts a body and follows redirects 307 and 308 (WebSub, section 5.1.1). It returns the
// errors of [fetch.Post].
func post(ctx context.Context, client *http.Client, target, contentType string, body []byte) error {
	c := *client
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.Method != http.MethodPost || len(via) > maxHops {
			return http.ErrUseLastResponse
		}
		if client.CheckRedirect != nil {
			return client.CheckRedirect(r, via)
		}
		return nil
	}
	_, _, err := fetch.Post(ctx, &c, target, http.Header{"Content-Type": {contentType}}, body)
	return err
}

// checkEndpoint returns the canonical URL of an endpoint.
func checkEndpoint(what, raw string) (string, error) {
	u, err := fetch.Endpoint(raw)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return u.String(), nil
}
