package scp

import (
	"context"
	"net/http"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// checkHTTPS checks the URLs of all collections in the sitemap, including those that were not
// fetched, and the redirects of fetched files.
func checkHTTPS(_ context.Context, s *siteContext, fail check.Fail) error {
	some := false
	for _, r := range s.refs {
		if r.url == "" || kit.IsLoopback(r.url) {
			continue
		}
		some = true
		if strings.HasPrefix(r.url, "http:") {
			fail(r.url, "served over http", "https")
		}
	}
	for _, f := range s.files {
		if f.err == nil && strings.HasPrefix(f.ref.url, "https:") && !f.resp.TLS && !kit.IsLoopback(f.ref.url) {
			fail(f.ref.url, "a redirect to "+f.resp.URL, "https")
		}
	}
	return check.Applied(some)
}

func checkSitemapHTTPS(_ context.Context, s *siteContext, fail check.Fail) error {
	if kit.IsLoopback(s.list.resp.URL) {
		return check.ErrNotApplicable
	}
	if !s.list.resp.TLS {
		fail(s.list.url, "served over http", "https")
	}
	return nil
}

// checkAccess requests some of the pages without credentials.
func checkAccess(ctx context.Context, s *siteContext, fail check.Fail) error {
	some := false
	for _, f := range s.files {
		if f.content == nil || f.ref.delta {
			continue
		}
		for _, u := range check.Sample(s.Target, f.public) {
			if !s.HasHost(u) {
				continue
			}
			resp, err := s.Get(ctx, u)
			if check.IsInconclusive(err) || ctx.Err() != nil {
				return err
			}
			if err != nil {
				continue
			}
			some = true
			if resp.Status == http.StatusUnauthorized {
				fail(u, "listed in "+f.ref.url+", but the response is "+resp.StatusText(), "only public pages")
			}
		}
		break
	}
	return check.Applied(some)
}
