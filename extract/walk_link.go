package extract

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

func (w *walker) link(n *html.Node) {
	if id, ok := w.notes.refs[n]; ok {
		if w.in.start(millrace.FootnoteSpan, id) {
			w.in.text("[" + noteLabel(plainText(n)) + "]")
			w.in.end()
		}
		return
	}
	url := ""
	if href := attr(n, "href"); href != "" {
		if href[0] == '#' && isPermalinkSign(n) {
			return
		}
		url = w.resolveLink(href)
	}
	opened := url != "" && w.in.start(millrace.LinkSpan, url)
	w.children(n)
	if opened {
		w.in.end()
	}
}

// resolveLink returns a link's absolute URL with its fragment, or "" if the URL is invalid or has a
// scheme other than http, https and mailto.
func (w *walker) resolveLink(ref string) string {
	ref = strings.TrimSpace(ref)
	if len(ref) > 7 && strings.EqualFold(ref[:7], "mailto:") && millrace.SafeURL(ref) {
		return ref
	}
	target, fragment, _ := strings.Cut(ref, "#")
	abs := w.pageURL
	if target != "" || fragment == "" {
		var err error
		if abs, err = canon.Resolve(w.base, target); err != nil {
			return ""
		}
	} else if w.base.String() != "" {
		if c, err := canon.URL(abs); err == nil {
			abs = c
		}
	}
	if fragment != "" {
		abs += "#" + escapeFragment(fragment)
	}
	return abs
}

// resolve returns the absolute URL of a resource, or "" if ref is empty, a data URL or invalid.
func (w *walker) resolve(ref string) string {
	if strings.TrimSpace(ref) == "" || strings.HasPrefix(ref, "data:") {
		return ""
	}
	abs, err := canon.Resolve(w.base, ref)
	if err != nil {
		return ""
	}
	return abs
}

// escapeFragment escapes the characters that are not allowed in a URL. It keeps existing escapes.
func escapeFragment(s string) string {
	plain, err := url.PathUnescape(s)
	if err != nil {
		plain = s
	}
	return (&url.URL{Fragment: plain, RawFragment: s}).EscapedFragment()
}
