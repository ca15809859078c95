package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Advertise returns the links that llms.txt version 2 requires. Every page links to its Markdown,
// and to the llms.txt that covers the page: that of the innermost folder with its own file.
func (p *publisher) Advertise(v millrace.View) millrace.Advertisement {
	site := v.Site()
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	pl, err := p.plans.of(context.Background(), v)
	if err != nil {
		pl = new(plan) // the llms.txt of the root covers every page
	}
	link := millrace.Link{URL: rootOf(docs) + listPath, Rel: "describedby", Type: listType}
	n := millrace.Advertisement{
		Root:    []millrace.Link{link},
		Entries: []millrace.Entry{{URL: docs + listPath, Type: listType, Spec: source}},
		Allow:   []string{"/*llms*.txt$", "/*" + ending + "$", "/feed.", "/feed-", "/sitemap.xml", "/sitemap-*.xml$", licensePath},
	}
	n.Page = func(ctx context.Context, pagePath string) ([]millrace.Link, error) {
		t, err := v.Tag(ctx, Name, pagePath)
		if errors.Is(err, millrace.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		its := millrace.Link{URL: docs + tagName(site, t), Rel: "alternate", Type: "text/markdown"}
		if site.EndpointBase == site.Base && !p.static {
			its.Vary = "Accept"
		}
		out := []millrace.Link{its}
		if list := pl.covering(canon.Relative(site.Base, t.URL)); pagePath != "/" || list != listPath { // the root already has that link
			out = append(out, millrace.Link{URL: docs + list, Rel: "describedby", Type: listType})
		}
		return out, nil
	}
	n.ExplainFallback = func(ctx context.Context, r *http.Request) (field, why string, err error) {
		if p.static || !mayNegotiate(site, r) {
			return "", "", nil
		}
		page, err := v.Page(ctx, millrace.Ref{URL: identityOf(site, r)})
		if errors.Is(err, millrace.ErrNotFound) {
			return "", "", nil
		}
		if err != nil {
			return "", "", err
		}
		if why = missing(site, page); why == "" || why == unnamed {
			return "", "", nil
		}
		return "X-Markdown-Missing", why, nil
	}
	p.advertise(site, &n)
	return n
}

// rootOf returns the path of the endpoint base.
func rootOf(docs string) string {
	u, err := url.Parse(docs)
	if err != nil {
		return docs
	}
	return u.EscapedPath()
}
