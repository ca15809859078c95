package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// mayNegotiate reports whether a request may negotiate the Markdown of a page: documents and pages
// must have the same base, and the client must prefer Markdown.
func mayNegotiate(site millrace.Site, r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == "") && site.EndpointBase == site.Base && prefers(r.Header["Accept"])
}

// identityOf returns the identity of the requested page, or "" if the URL is invalid.
func identityOf(site millrace.Site, r *http.Request) string {
	name := r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	u, err := canon.URL(canon.Absolute(site.Base, name))
	if err != nil {
		return ""
	}
	return canon.Relative(site.Base, u)
}

// prefers reports whether Accept fields (RFC 9110, section 12.5.1) contain Markdown and give no
// media type of HTML pages a higher weight. A client that accepts any type, like a browser, gets
// the page.
func prefers(fields []string) bool {
	const unsaid = -1
	markdown, html, xhtml, text, any := unsaid, unsaid, unsaid, unsaid, unsaid
	for _, field := range fields {
		for element := range strings.SplitSeq(field, ",") {
			media, params, _ := strings.Cut(element, ";")
			var to *int
			switch strings.ToLower(strings.Trim(media, " \t")) {
			case "text/markdown":
				to = &markdown
			case "text/html":
				to = &html
			case "application/xhtml+xml":
				to = &xhtml
			case "text/*":
				to = &text
			case "*/*":
				to = &any
			default:
				continue
			}
			*to = max(*to, mediaQuality(params))
		}
	}
	if html == unsaid { // the more specific range applies
		if html = text; html == unsaid {
			html = any
		}
	}
	return markdown > 0 && markdown >= html && markdown >= xhtml
}

// mediaQuality returns the quality in the parameters of a media range, in thousandths. An invalid
// quality is zero.
func mediaQuality(params string) int {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.Trim(param, " \t"), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		q, err := strconv.ParseFloat(value, 64)
		if err != nil || !(q >= 0 && q <= 1) || len(value) > 5 {
			return 0
		}
		return int(q*1000 + 0.5)
	}
	return 1000
}
