package extract

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace/internal/canon"
)

// crumb is one breadcrumb: a step on the path from the home page to the page.
type crumb struct{ name, ref string }

// maxCrumbs is the maximum length of a list of breadcrumbs.
const (
	maxCrumbs = 12
)

// section returns the section of the site to which the page belongs: the section that the page
// declares, else the last breadcrumb before the page, else the page's category.
func (m *meta) section() string {
	if s := m.first("section", "json-ld articleSection", "meta article:section", "meta articlesection", "meta section"); s != "" || m.url.Path == "/" {
		return s
	}
	if s := m.first("section", "meta parsely-section"); s != "" {
		return s
	}
	found := func(source, s string) string {
		m.res.Sources["section"] = source
		return s
	}
	for i := range m.ldObjects {
		for _, t := range []ldObject{m.ldObjects[i], inner(m.ldObjects[i].values["breadcrumb"])} {
			if s := m.parent(t.crumbs()); s != "" {
				return found("json-ld breadcrumb", s)
			}
		}
	}
	if l := m.related("category"); len(l) > 0 {
		return found("rel category", l[0])
	}
	return ""
}

// inner returns the value of a property as an object, which is empty if the value is not an object.
func inner(v any) ldObject {
	values, _ := v.(map[string]any)
	return ldObject{types: texts(values["@type"]), values: values}
}

// crumbs returns the breadcrumbs of a BreadcrumbList, or nil for another object.
func (t *ldObject) crumbs() []crumb {
	list, _ := t.values["itemListElement"].([]any)
	if !t.is("BreadcrumbList") || len(list) > maxCrumbs {
		return nil
	}
	type step struct {
		crumb
		at float64
	}
	var steps []step
	for _, e := range list {
		o, _ := e.(map[string]any)
		item := inner(o["item"])
		at, _ := o["position"].(float64)
		steps = append(steps, step{crumb{
			name: cmp.Or(firstText(o["name"]), item.text("name")),
			ref:  cmp.Or(firstText(o["item"]), item.text("@id"), item.text("url")),
		}, at})
		if len(item.values) > 0 {
			steps[len(steps)-1].ref = cmp.Or(item.text("@id"), item.text("url"))
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	var out []crumb
	for _, s := range steps {
		out = append(out, s.crumb)
	}
	return out
}

// parent returns the name of the last breadcrumb before the page, or "" if that is the home page or
// has no usable name.
func (m *meta) parent(way []crumb) string {
	for len(way) > 0 {
		last := way[len(way)-1]
		at := m.resolve(last.ref)
		switch {
		case last.ref == "" && len(way) > 1, at != nil && m.isHere(at.String()), letters(last.name) == letters(m.page.Title):
			way = way[:len(way)-1]
			continue
		case last.ref == "" || at == nil || strings.Trim(at.Path, "/") == "", last.name == "", len(last.name) > 80, strings.ContainsAny(last.name, "<>«»‹›←→_"), isTemplate(last.name):
			return ""
		}
		return last.name
	}
	return ""
}

// resolve returns the URL of a reference without its fragment, or nil if the reference is invalid.
func (m *meta) resolve(ref string) *url.URL {
	ref, _, _ = strings.Cut(ref, "#")
	abs, err := canon.Resolve(m.base, ref)
	if err != nil {
		return nil
	}
	u, err := url.Parse(abs)
	if err != nil {
		return nil
	}
	return u
}

// related returns the texts of the links whose rel attribute assigns the page to a tag or a
// category. If there are more than 20, they are a cloud of all tags, and related returns nil.
func (m *meta) related(as string) []string {
	var out []string
	for _, a := range m.c.tags {
		text := plainText(a)
		if hasToken(attr(a, "rel"), "category") != (as == "category") || text == "" || strings.EqualFold(text, "uncategorized") || m.isApart(a) || m.inCard(a, text) || inComments(a, 8) {
			continue
		}
		if out = append(out, strings.TrimPrefix(text, "#")); len(out) > 20 {
			return nil
		}
	}
	return out
}

// isApart reports whether an element is in a part of the document that is not about the page.
func (m *meta) isApart(n *html.Node) bool {
	for ; n != nil && n.DataAtom != atom.Body; n = n.Parent {
		if isAside(n) || n.DataAtom == atom.Aside {
			return true
		}
	}
	return false
}
