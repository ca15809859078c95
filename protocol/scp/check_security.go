package scp

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/millrace/millrace/check"
)

// checkHTTPS is about what the sitemap names, whether it is fetched or not.
func checkHTTPS(_ context.Context, s *survey, fail check.Fail) error {
	some := false
	for _, r := range s.refs {
		if r.url == "" || loopback(r.url) {
			continue
		}
		some = true
		if strings.HasPrefix(r.url, "http:") {
			fail(r.url, "served over http", "https")
		}
	}
	for _, f := range s.files {
		if f.err == nil && strings.HasPrefix(f.ref.url, "https:") && !f.resp.TLS && !loopback(f.ref.url) {
			fail(f.ref.url, "a redirect to "+f.resp.URL, "https")
		}
	}
	return check.Applied(some)
}

func checkSitemapHTTPS(_ context.Context, s *survey, fail check.Fail) error {
	if loopback(s.list.resp.URL) {
		return check.ErrNotApplicable
	}
	if !s.list.resp.TLS {
		fail(s.list.url, "served over http", "https")
	}
	return nil
}

// loopback reports whether a URL is of this machine, where there is no https
// to ask for.
func loopback(u string) bool {
	host := hostOf(u)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// checkAccess asks for some of the pages as anybody would.
func checkAccess(ctx context.Context, s *survey, fail check.Fail) error {
	some := false
	for _, f := range s.files {
		if f.content == nil || f.ref.delta {
			continue
		}
		for _, u := range check.Sample(s.t, f.public) {
			if !s.near(u) {
				continue
			}
			resp, err := s.t.Get(ctx, u)
			if check.Unsure(err) || ctx.Err() != nil {
				return err
			}
			if err != nil {
				continue
			}
			some = true
			if resp.Status == http.StatusUnauthorized {
				fail(u, "it is in "+f.ref.url+", and answers "+resp.Said(), "pages that anybody may have")
			}
		}
		break
	}
	return check.Applied(some)
}
