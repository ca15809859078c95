package weblink

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace/internal/canon"
)

// maxHead is the number of bytes of an HTML document to read.
const maxHead = 1 << 20

// Head contains the elements of the head of an HTML document, in order.
type Head struct {
	Base  *url.URL // base of relative references in the document
	Links []Link   // link elements
	Metas []Meta   // meta elements with a name or a property
	Data  []string // texts of script elements of type application/ld+json
}

// Meta is one meta element.
type Meta struct {
	Name    string // name attribute, or else the property attribute, in lower case
	Content string // content attribute
}

// IsHTML reports whether a header declares HTML or XHTML.
func IsHTML(h http.Header) bool {
	mt := mediaType(h.Get("Content-Type"))
	return mt == "text/html" || mt == "application/xhtml+xml"
}

// HTML reads the head of the HTML document at a URL, in UTF-8 or any other
// superset of ASCII. It stops where the body starts, and after the first MiB.
func HTML(r io.Reader, at *url.URL) Head {
	h := Head{Base: at}
	var links []map[string]string
	based := false
	z := html.NewTokenizer(io.LimitReader(r, maxHead))
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		if tt != html.StartTagToken && tt != html.SelfClosingTagToken {
			continue
		}
		name, more := z.TagName()
		tag := atom.Lookup(name)
		if tag == atom.Body {
			break
		}
		switch a := attributes(z, more); tag {
		case atom.Link:
			if a["href"] != "" {
				links = append(links, a)
			}
		case atom.Base:
			if href, ok := a["href"]; ok && !based { // only the first base element counts
				based = true
				h.Base = resolve(at, href)
			}
		case atom.Meta:
			if m := strings.ToLower(cmp.Or(a["name"], a["property"])); m != "" {
				h.Metas = append(h.Metas, Meta{m, a["content"]})
			}
		case atom.Script:
			if mediaType(a["type"]) == "application/ld+json" && z.Next() == html.TextToken {
				h.Data = append(h.Data, string(z.Text()))
			}
		}
	}
	// The base applies to elements before it as well.
	for _, a := range links {
		if l, ok := newLink(h.Base, a["href"], a); ok {
			h.Links = append(h.Links, l)
		}
	}
	return h
}

// attributes returns the attributes of a tag. If a name occurs twice, the first one counts.
func attributes(z *html.Tokenizer, more bool) map[string]string {
	a := map[string]string{}
	for more {
		var k, v []byte
		k, v, more = z.TagAttr()
		if _, twice := a[string(k)]; !twice {
			a[string(k)] = string(v)
		}
	}
	return a
}

// resolve returns the URL of a base element, or the document's own URL if href is invalid.
func resolve(at *url.URL, href string) *url.URL {
	abs, err := canon.Resolve(at, href)
	if err != nil {
		return at
	}
	u, err := url.Parse(abs)
	if err != nil {
		return at
	}
	return u
}
