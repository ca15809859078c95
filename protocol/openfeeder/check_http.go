package openfeeder

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

func checkWellKnown(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.found == s.about {
		return nil
	}
	if s.about.err == nil {
		switch s.about.resp.Status {
		case http.StatusUnauthorized, http.StatusForbidden:
			return check.ErrNotApplicable // the next rule reports it
		}
	}
	want := "the discovery document"
	if s.found.err == nil {
		want += ", as at " + s.found.url
	}
	fail(s.about.url, s.about.got(), want)
	return nil
}

func checkPublic(_ context.Context, s *siteContext, fail check.Fail) error {
	for _, a := range []*siteResponse{s.about, s.found} {
		if a.err == nil && (a.resp.Status == http.StatusUnauthorized || a.resp.Status == http.StatusForbidden) {
			fail(a.url, a.resp.StatusText(), "200 OK without a key")
			return nil
		}
	}
	return nil
}

func checkStatus(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.found.err != nil || s.found.resp.Status >= 300 {
		return check.ErrNotApplicable // earlier rules report the error
	}
	if s.found.resp.Status != http.StatusOK {
		fail(s.found.url, s.found.resp.StatusText(), "200 OK")
	}
	return nil
}

func checkContentType(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.found.err != nil || s.found.resp.Status >= 300 {
		return check.ErrNotApplicable
	}
	kit.MediaType(s.found.url, s.found.resp, mediaType, fail)
	return nil
}

func checkObject(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.found.err != nil || s.found.resp.Status >= 300 {
		return check.ErrNotApplicable
	}
	if s.found.body == nil {
		fail(s.found.url, s.found.got(), "a JSON object")
	}
	return nil
}

func checkEndpoint(_ context.Context, s *siteContext, fail check.Fail) error {
	switch {
	case s.found.body == nil, s.closed():
		return check.ErrNotApplicable
	case s.index == nil:
		fail(s.found.url, "feed.endpoint: "+kit.Text(s.found.body.at("feed", "endpoint")), "a URL of the site")
	case !s.index.ok():
		fail(s.index.url, s.index.got(), "200 OK and an index in JSON")
	}
	return nil
}

// checkAuth checks that the discovery document declares auth if the endpoint needs a key.
func checkAuth(_ context.Context, s *siteContext, fail check.Fail) error {
	if !s.closed() {
		return check.ErrNotApplicable
	}
	var list []string
	_ = json.Unmarshal(s.found.body.at("capabilities"), &list)
	if !slices.Contains(list, authCapability) {
		fail(s.found.url, "capabilities without auth, and "+s.index.resp.StatusText()+" at "+s.index.url, `"auth" in capabilities`)
	}
	return nil
}

func checkBearer(_ context.Context, s *siteContext, fail check.Fail) error {
	if !s.closed() || s.index.resp.Status != http.StatusUnauthorized {
		return check.ErrNotApplicable
	}
	got := s.index.resp.Field("WWW-Authenticate")
	if !strings.Contains(" "+strings.ToLower(got)+" ", "bearer") {
		fail(s.index.url, "WWW-Authenticate: "+got, "WWW-Authenticate: Bearer")
	}
	return nil
}

// missing requests a page that exists on no site. If the endpoint needs a key, missing returns the
// response to a request without a key, which is an error, too.
func (s *siteContext) missing(ctx context.Context) (*siteResponse, error) {
	if s.closed() {
		return s.index, nil
	}
	if err := s.live(); err != nil {
		return nil, err
	}
	return s.ask(ctx, "url", "/millrace-check/there-is-no-such-page")
}

func checkNotFound(ctx context.Context, s *siteContext, fail check.Fail) error {
	if s.closed() {
		return check.ErrNotApplicable
	}
	a, err := s.missing(ctx)
	if err != nil {
		return err
	}
	if a.err != nil || a.resp.Status != http.StatusNotFound {
		fail(a.url, a.got(), "404 Not Found with an error's body")
	}
	return nil
}

// answers returns the successful responses of the endpoint.
func (s *siteContext) answers() []*siteResponse {
	var out []*siteResponse
	if s.index != nil && s.index.ok() {
		out = append(out, s.index)
	}
	for _, p := range s.pages {
		if p.ok() {
			out = append(out, p)
		}
	}
	return out
}

func checkVersionField(_ context.Context, s *siteContext, fail check.Fail) error {
	return s.eachHeader(versionHead, func(a *siteResponse, got string) {
		if got != version {
			fail(a.url, "X-OpenFeeder: "+got, "X-OpenFeeder: "+version)
		}
	})
}

func checkCacheField(_ context.Context, s *siteContext, fail check.Fail) error {
	return s.eachHeader(cacheHead, func(a *siteResponse, got string) {
		if got != "HIT" && got != "MISS" {
			fail(a.url, cacheHead+": "+got, "HIT or MISS")
		}
	})
}

// eachHeader calls f with a header field of every response. It does not apply to a static host,
// which does not send the fields of the protocol.
func (s *siteContext) eachHeader(name string, f func(a *siteResponse, got string)) error {
	answers := s.answers()
	if len(answers) == 0 || s.feed.Static {
		return check.ErrNotApplicable
	}
	for _, a := range answers {
		f(a, a.resp.Header.Get(name))
	}
	return nil
}

// private lists first path segments of account and admin pages of common systems, which a feed
// should not expose (section 10).
var private = []string{
	"account", "my-account", "admin", "wp-admin", "administrator", "dashboard", "checkout", "cart", "basket", "login", "wp-login.php", "signin", "logout", "password-reset",
}

func checkExclusions(_ context.Context, s *siteContext, fail check.Fail) error {
	if len(s.items) == 0 {
		return check.ErrNotApplicable
	}
	for _, it := range s.items {
		u := kit.Text(it["url"])
		if abs, err := canon.URL(u); err == nil {
			u = targetOf(abs)
		}
		segment, _, _ := strings.Cut(strings.TrimPrefix(u, "/"), "/")
		segment, _, _ = strings.Cut(segment, "?")
		if slices.Contains(private, strings.ToLower(segment)) {
			fail(s.index.url, "the index lists "+u, "no account, checkout or admin pages")
		}
	}
	return nil
}

// checkRobots checks whether robots.txt allows the discovery document, the endpoint and the sampled
// pages. A rule about queries in robots.txt affects only the pages.
func checkRobots(ctx context.Context, s *siteContext, fail check.Fail) error {
	urls := []string{s.found.url}
	if s.feed.Endpoint != "" {
		urls = append(urls, s.feed.Endpoint)
	}
	for _, page := range s.pages {
		urls = append(urls, page.url)
	}
	_, robots, err := s.Robots(ctx)
	if err != nil {
		return err
	}
	if robots == nil {
		return check.ErrNotApplicable
	}
	return protocol.CheckRobots(ctx, s.Target, fail, urls, func(u *url.URL) bool { return s.feed.covers(permits(robots), u) })
}
