package web

import (
	"context"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// forms returns the responses with a page's Markdown: the response at the URL of the Markdown, and
// the response at the page's URL.
func (p *seenPage) forms() (out []*check.Response) {
	for _, r := range []*check.Response{p.md, p.own} {
		if r != nil {
			out = append(out, r)
		}
	}
	return out
}

// onForms calls f for each response with a page's Markdown.
func onForms(p *seenPage, f func(r *check.Response)) (bool, error) {
	forms := p.forms()
	for _, r := range forms {
		f(r)
	}
	return len(forms) > 0, nil
}

func checkAlternate(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if p.at == "" {
		if p.linkedURL == "" {
			return false, nil
		}
		if resp, err := s.Target.Get(ctx, p.linkedURL); err == nil && needsKey(resp) != nil {
			return true, needsKey(resp)
		}
		fail(p.url, "a link to "+p.linkedURL+", which is not Markdown", "a link to the page's Markdown")
		return true, nil
	}
	if p.linkedURL == "" {
		fail(p.url, "no link", `<`+p.at+`>; rel="alternate"; type="text/markdown"`)
	}
	return true, nil
}

func checkDescribed(_ context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if s.llms == nil {
		return false, nil
	}
	is := func(l weblink.Link) bool { return l.Is("describedby", "") && strings.HasSuffix(l.URL, pathLLMs) }
	if !slices.ContainsFunc(p.links, is) {
		fail(p.url, "no link", `<`+s.llms.resp.URL+`>; rel="describedby"`)
	}
	return true, nil
}

func checkMarkdownType(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	return onForms(p, func(r *check.Response) {
		mt, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if mt != "text/markdown" {
			fail(r.URL, "Content-Type: "+r.Header.Get("Content-Type"), markdownType)
		}
	})
}

func checkCharset(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	applies := false
	_, err := onForms(p, func(r *check.Response) {
		mt, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if mt != "text/markdown" {
			return
		}
		if applies = true; err != nil || params["charset"] == "" {
			fail(r.URL, "Content-Type: "+r.Header.Get("Content-Type"), markdownType)
		}
	})
	return applies, err
}

func checkMarkdownUTF8(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	applies := false
	_, err := onForms(p, func(r *check.Response) {
		_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if c := strings.ToLower(params["charset"]); c != "" && c != "utf-8" && c != "us-ascii" {
			return
		}
		if applies = true; !utf8.Valid(r.Body) {
			fail(r.URL, "bytes that are not UTF-8", "UTF-8")
		}
	})
	return applies, err
}

func checkCanonical(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if p.md == nil {
		return false, nil
	}
	got := "no link"
	for _, l := range kit.Links(p.md) {
		if l.Is("canonical", "") {
			if got = l.URL; sameResource(p, l.URL) {
				return true, nil
			}
		}
	}
	fail(p.at, got, `<`+p.url+`>; rel="canonical"`)
	return true, nil
}

// sameResource reports whether a canonical link leads to the page, or to the canonical URL of the
// page.
func sameResource(p *seenPage, to string) bool {
	if u, err := canon.URL(p.url); err == nil && u == to {
		return true
	}
	return slices.ContainsFunc(p.links, func(l weblink.Link) bool { return l.Is("canonical", "") && l.URL == to })
}

func checkValidator(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	return onForms(p, func(r *check.Response) {
		if r.Header.Get("ETag") == "" && r.Header.Get("Last-Modified") == "" {
			fail(r.URL, "neither ETag nor Last-Modified", "a validator")
		}
	})
}

// askForms returns a check that tests a condition on each response with a page's Markdown.
func askForms(f kit.Condition) siteCheck {
	return kit.Probes(func(s *siteContext) (out []*kit.Probe) {
		for _, page := range s.pages {
			for _, r := range page.forms() {
				p := &kit.Probe{Target: s.Target, URL: r.URL, First: r, Tag: r.Header.Get("ETag")}
				if r == page.own {
					p.Header = page.accept
				}
				out = append(out, p)
			}
		}
		return out
	}, f)
}

func checkVary(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if p.own == nil {
		return false, nil
	}
	for what, r := range map[string]*check.Response{"HTML": p.html, "Markdown": p.own} {
		if !kit.Varies(r.Header, "Accept") {
			fail(p.url, what+" with Vary: "+r.Field("Vary"), "Vary: Accept")
		}
	}
	return true, nil
}

// negotiated requests a page with an Accept field, and reports whether the response is
// Markdown.
func (p *seenPage) negotiated(ctx context.Context, s *siteContext, accept string) (bool, *check.Response, error) {
	resp, err := s.Target.Do(ctx, http.MethodGet, p.url, http.Header{"Accept": {accept}})
	if err != nil {
		return false, nil, err
	}
	return isMarkdownType(resp.Header.Get("Content-Type")), resp, nil
}

func checkPreference(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if p.own == nil {
		return false, nil
	}
	for accept, want := range map[string]bool{"text/html;q=0.5, text/markdown": true, "text/html, text/markdown;q=0.5": false} {
		is, resp, err := p.negotiated(ctx, s, accept)
		if err != nil {
			return true, err
		}
		if is != want {
			fail(p.url, resp.Header.Get("Content-Type")+" for Accept: "+accept, "the form with the higher q")
		}
	}
	return true, nil
}

func checkNever(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	return s.never(ctx, p, "text/markdown;q=0, */*;q=0.1", fail)
}

func checkAnything(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	return s.never(ctx, p, "*/*", fail)
}

func (s *siteContext) never(ctx context.Context, p *seenPage, accept string, fail check.Fail) (bool, error) {
	if p.own == nil {
		return false, nil
	}
	is, _, err := p.negotiated(ctx, s, accept)
	if is {
		fail(p.url, "Markdown for Accept: "+accept, "the page")
	}
	return true, err
}

func checkOtherTag(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if p.own == nil {
		return false, nil
	}
	html, own := p.html.Header.Get("ETag"), p.own.Header.Get("ETag")
	if html == "" || own == "" {
		return false, nil
	}
	if html == own && !strings.HasPrefix(own, "W/") {
		fail(p.url, "ETag "+own+" for both forms", "a different tag for each form")
	}
	return true, nil
}
