package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// MaxPage is the maximum size of a page in bytes.
const MaxPage = 50 << 20

// Document fetches the HTML of a page. It returns the URL after redirects as address.
func Document(ctx context.Context, client *http.Client, pageURL string) (data []byte, address, contentType string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, pageURL, nil)
	if err != nil {
		return nil, "", "", fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	req.Header.Set("Accept", "text/html, application/xhtml+xml")
	resp, err := fetch.Do(ctx, client, req)
	if err != nil {
		return nil, "", "", err
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, "", "", errors.Join(err, resp.Body.Close())
	}
	if data, err = fetch.ReadBody(resp, MaxPage); err != nil {
		return nil, "", "", err
	}
	return data, resp.Request.URL.String(), resp.Header.Get("Content-Type"), nil
}

// Page fetches and extracts a page of a site. It refuses http if the site uses https, and
// redirects to other sites.
func Page(ctx context.Context, client *http.Client, root, pageURL string) (*millrace.Page, error) {
	if strings.HasPrefix(root, "https:") && !strings.HasPrefix(pageURL, "https:") {
		return nil, fmt.Errorf("page %s of %s: redirect from https to http: %w", pageURL, root, millrace.ErrForbidden)
	}
	body, address, contentType, err := Document(ctx, client, pageURL)
	if err != nil {
		return nil, err
	}
	_, from, _ := strings.Cut(canon.Origin(pageURL), "://")
	if _, to, _ := strings.Cut(canon.Origin(address), "://"); to != from {
		return nil, fmt.Errorf("page %s of %s: redirect to another site, %s: %w", pageURL, root, to, millrace.ErrInvalid)
	}
	rules, err := Rules{}.Compile()
	if err != nil {
		return nil, err
	}
	res, err := extract.HTML(ctx, body, address, &extract.Options{ContentType: contentType, Rules: rules})
	if err != nil {
		return nil, err
	}
	res.Page.URL = pageURL
	return res.Page, nil
}
