package folder

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/millrace/millrace"
)

// Why a name is no page's.
var (
	errPrivate = fmt.Errorf("%w: a name that starts with an underscore is a draft's or a part's", millrace.ErrInvalid)
	errStatus  = fmt.Errorf("%w: the page of an HTTP error", millrace.ErrInvalid)
	errStub    = fmt.Errorf("%w: the stub by which a search engine knows the owner", millrace.ErrInvalid)
	errLong    = fmt.Errorf("%w: the path is longer than %d bytes", millrace.ErrTooLarge, maxURL)
)

var stub = regexp.MustCompile(`^(google|yandex_)[0-9a-f]{12,20}\.html$`)

// hidden reports whether a name is left out without a word.
func hidden(name string) bool { return strings.HasPrefix(name, ".") && name != ".well-known" }

// isHTML reports whether a file name is that of an HTML page.
func isHTML(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm", ".xhtml":
		return true
	}
	return false
}

// fileReason says why an HTML file of this name is no page.
func fileReason(name string) error {
	switch stem := strings.TrimSuffix(name, path.Ext(name)); {
	case strings.HasPrefix(name, "_"):
		return errPrivate
	case stem == "404", stem == "500", stem == "50x":
		return errStatus
	case stub.MatchString(name):
		return errStub
	}
	return nil
}

// escape writes one segment of a path as canonical URLs have it: every byte
// that is no pchar of RFC 3986, section 3.3, percent-encoded. A "%" of a file
// name is one.
func escape(segment string) string {
	const hexDigits = "0123456789ABCDEF"
	b := make([]byte, 0, len(segment)+8)
	for _, c := range []byte(segment) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~!$&'()*+,;=:@", c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(b)
}

// segments gives the names of a URL path, decoded, and whether the path ends
// with "/". ok is false for a path that can name no visible file: no absolute
// path, an empty or dot segment, an encoded slash, a NUL, a hidden name.
func segments(urlPath string) (names []string, slash, ok bool) {
	rest, ok := strings.CutPrefix(urlPath, "/")
	if !ok {
		return nil, false, false
	}
	if rest == "" {
		return nil, true, true
	}
	rest, slash = strings.CutSuffix(rest, "/")
	for s := range strings.SplitSeq(rest, "/") {
		name, err := url.PathUnescape(s)
		if err != nil || name == "" || strings.ContainsAny(name, "/\x00") || hidden(name) {
			return nil, false, false
		}
		names = append(names, name)
	}
	return names, slash, true
}
