package canon

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// MaxURL is the maximum length of a canonical URL in bytes. RFC 9110, section 4.1, recommends that
// every implementation support at least this length.
const MaxURL = 8000

const maxHost = 254 // a DNS name of 253 bytes and a final dot

// reason is an error with a code for millrace.ErrorCode.
type reason struct{ code, text string }

func (r *reason) Error() string     { return r.text }
func (r *reason) ErrorCode() string { return r.code }

var (
	errScheme      = error(&reason{"bad-scheme", "the scheme is not http or https"})
	errHost        = error(&reason{"bad-host", "the host is invalid or missing"})
	errCredentials = error(&reason{"url-credentials", "the URL contains credentials"})
	errPort        = error(&reason{"bad-port", "the port is not a number from 1 to 65535"})
	errControl     = error(&reason{"url-control", "the URL contains a control character"})
	errUTF8        = error(&reason{"utf-8", "the URL is not valid UTF-8"})
	errLength      = error(&reason{"url-size", fmt.Sprintf("the URL is longer than %d bytes", MaxURL)})
	errSpace       = error(&reason{"url-space", "the URL has leading or trailing white space"})
)

// urlHost converts a host name of any script to ASCII like browsers (UTS 46, not
// transitional).
var urlHost = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.Transitional(false))

// URL returns the canonical form of an absolute http or https URL: scheme and host in
// lower case, the host in punycode, no default port, dot segments resolved,
// percent-encoding in upper case and only where RFC 3986 requires it, "/" for an empty
// path, no fragment, no "?" before an empty query. The query keeps its order. A "%"
// that starts no escape becomes "%25".
//
// Two URLs with the same canonical form identify the same resource. The form is a valid RFC 3986
// URI of at most [MaxURL] bytes, and is its own canonical form. Credentials, control characters,
// white space at the ends and invalid UTF-8 are errors.
func URL(s string) (string, error) {
	if isCanonical(s) {
		return s, nil
	}
	c, err := canonicalURL(s)
	if err == nil && strings.TrimSpace(s) != s {
		err = errSpace
	}
	if err != nil {
		return "", urlError(s, err)
	}
	return c, nil
}

// Resolve returns the canonical form of a reference in a document at base, like a link
// in HTML: RFC 3986, section 5.3, after dropping white space at the ends, and tabs and
// line ends inside. A scheme other than http and https is an error. With a nil base,
// only absolute references resolve.
func Resolve(base *url.URL, ref string) (string, error) {
	c, err := resolve(base, ref)
	if err != nil {
		return "", urlError(ref, err)
	}
	return c, nil
}

// Relative returns the identity of a page: its path and query under the site's base, starting with
// "/", or abs itself for a page elsewhere. Both arguments must be canonical, and base must have no
// query; a final "/" is added to base if absent. An identity never starts with "//", which a
// browser would read as a host: such a page keeps its absolute URL.
func Relative(base, abs string) string {
	base = strings.TrimSuffix(base, "/")
	if len(abs) > len(base) && abs[len(base)] == '/' && abs[:len(base)] == base {
		if rest := abs[len(base):]; len(rest) < 2 || rest[1] != '/' {
			return rest
		}
	}
	return abs
}

// Absolute is the inverse of [Relative]: for every canonical u,
// Absolute(base, Relative(base, u)) == u.
func Absolute(base, pagePath string) string {
	if !strings.HasPrefix(pagePath, "/") {
		return pagePath
	}
	return strings.TrimSuffix(base, "/") + pagePath
}

// Origin returns scheme, host and port of a canonical URL:
// "https://example.com".
func Origin(u string) string {
	scheme, rest, _ := strings.Cut(u, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// urlError adds the URL, without its user name and password, to an error.
func urlError(s string, err error) error {
	if start := strings.Index(s, "//") + 2; start > 1 {
		end := len(s)
		if i := strings.IndexAny(s[start:], "/?#"); i >= 0 {
			end = start + i
		}
		if at := strings.LastIndexByte(s[start:end], '@'); at >= 0 {
			s = s[:start] + "…" + s[start+at:]
		}
	}
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return fmt.Errorf("URL %q: %w", s, err)
}

func resolve(base *url.URL, ref string) (string, error) {
	ref = strings.TrimFunc(ref, func(r rune) bool { return r <= ' ' })
	if strings.ContainsAny(ref, "\t\n\r") {
		ref = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(ref)
	}
	ref, _, _ = strings.Cut(ref, "#")
	switch {
	case isCanonical(ref):
		return ref, nil
	case hasScheme(ref), base == nil:
		return canonicalURL(ref)
	case base.User != nil:
		return "", errCredentials
	}
	var abs string
	switch origin := base.Scheme + "://" + base.Host; {
	case strings.HasPrefix(ref, "//"):
		abs = base.Scheme + ":" + ref
	case strings.HasPrefix(ref, "/"):
		abs = origin + ref
	case strings.HasPrefix(ref, "?"):
		abs = origin + base.EscapedPath() + ref
	case ref == "":
		abs = origin + base.EscapedPath()
		if base.RawQuery != "" {
			abs += "?" + base.RawQuery
		}
	default:
		path := base.EscapedPath()
		path = path[:strings.LastIndexByte(path, '/')+1]
		if path == "" {
			path = "/"
		}
		abs = origin + path + ref
	}
	if isCanonical(abs) {
		return abs, nil
	}
	return canonicalURL(abs)
}

// hasScheme reports whether s starts with a scheme (RFC 3986, section 3.1).
func hasScheme(s string) bool {
	for i := range len(s) {
		switch c := s[i] | 0x20; {
		case 'a' <= c && c <= 'z':
		case i > 0 && ('0' <= s[i] && s[i] <= '9' || s[i] == '+' || s[i] == '-' || s[i] == '.'):
		default:
			return i > 0 && s[i] == ':'
		}
	}
	return false
}

// canonicalURL returns the canonical form of an absolute URL. It appends the components to one
// buffer.
func canonicalURL(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errUTF8
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7F {
			return "", errControl
		}
	}
	s, _, _ = strings.Cut(s, "#")
	var scheme string
	switch {
	case len(s) >= 8 && strings.EqualFold(s[:8], "https://"):
		scheme, s = "https", s[8:]
	case len(s) >= 7 && strings.EqualFold(s[:7], "http://"):
		scheme, s = "http", s[7:]
	default:
		return "", errScheme
	}
	end := strings.IndexAny(s, "/?")
	if end < 0 {
		end = len(s)
	}
	authority, rest := s[:end], s[end:]
	b := make([]byte, 0, len(scheme)+3+len(s)+16)
	b = append(b, scheme...)
	b = append(b, "://"...)
	b, err := appendAuthority(b, scheme, authority)
	if err != nil {
		return "", err
	}
	path, query, _ := strings.Cut(rest, "?")
	b = appendPath(b, path)
	if query != "" {
		b = append(b, '?')
		b = appendEscaped(b, query, inQuery)
	}
	if len(b) > MaxURL {
		return "", errLength
	}
	return string(b), nil
}

func appendAuthority(b []byte, scheme, authority string) ([]byte, error) {
	if strings.Contains(authority, "@") {
		return nil, errCredentials
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return nil, errHost
		}
		b = append(b, '[')
		b = addr.AppendTo(b)
		b = append(b, ']')
	} else {
		var err error
		if b, err = appendName(b, host); err != nil {
			return nil, err
		}
	}
	if port == "" {
		return b, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return nil, errPort
	}
	if n == defaultPort(scheme) {
		return b, nil
	}
	return strconv.AppendUint(append(b, ':'), n, 10), nil
}

func defaultPort(scheme string) uint64 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// appendName appends a host name in lower case and punycode. It rejects empty labels.
func appendName(b []byte, host string) ([]byte, error) {
	if !isASCII(host) {
		var err error
		if host, err = urlHost.ToASCII(host); err != nil {
			return nil, fmt.Errorf("%w: %w", errHost, err)
		}
	}
	start := len(b)
	for i := range len(host) {
		c := host[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if classes[c]&inHost == 0 || c == '.' && (i == 0 || host[i-1] == '.') {
			return nil, errHost
		}
		b = append(b, c)
	}
	if n := len(b) - start; n == 0 || n > maxHost {
		return nil, errHost
	}
	return b, nil
}

// appendPath appends an absolute path without dot segments. Escapes are normalized first, so
// that "%2e" counts as a dot.
func appendPath(b []byte, path string) []byte {
	start := len(b)
	for first := true; first || path != ""; first = false {
		var segment string
		path = strings.TrimPrefix(path, "/")
		last := true
		if i := strings.IndexByte(path, '/'); i >= 0 {
			segment, path, last = path[:i], path[i:], false
		} else {
			segment, path = path, ""
		}
		b = append(b, '/')
		at := len(b)
		b = appendEscaped(b, segment, inPath)
		switch string(b[at:]) {
		case ".":
			b = b[:at-1]
		case "..":
			b = b[:at-1]
			if i := bytes.LastIndexByte(b[start:], '/'); i >= 0 {
				b = b[:start+i]
			}
		default:
			continue
		}
		if last {
			b = append(b, '/')
		}
	}
	return b
}

// appendEscaped appends s with every byte outside the class percent-encoded,
// unreserved characters decoded and the rest of its escapes in upper case.
func appendEscaped(b []byte, s string, class uint8) []byte {
	const hexDigits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
			if classes[c]&unreserved != 0 {
				b = append(b, c)
				continue
			}
		} else if classes[c]&class != 0 {
			b = append(b, c)
			continue
		}
		b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}

// isCanonical reports whether s is its own canonical form. It may return false for an
// IPv6 host in canonical form. It allocates nothing.
func isCanonical(s string) bool {
	if len(s) > MaxURL {
		return false
	}
	scheme := "https"
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		scheme = "http"
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return false
		}
	}
	i := 0
	for ; i < len(rest) && classes[rest[i]]&inHost != 0; i++ {
		if rest[i] == '.' && (i == 0 || rest[i-1] == '.') {
			return false
		}
	}
	if i == 0 || i > maxHost || i == len(rest) {
		return false
	}
	if rest[i] == ':' {
		port, _, _ := strings.Cut(rest[i+1:], "/")
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == defaultPort(scheme) || port[0] == '0' {
			return false
		}
		i += 1 + len(port)
	}
	if i == len(rest) || rest[i] != '/' {
		return false
	}
	class := inPath
	for rest = rest[i:]; rest != ""; {
		c := rest[0]
		switch {
		case classes[c]&class != 0:
		case c == '/' && class == inPath:
			if isDots(rest[1:]) {
				return false
			}
		case c == '?' && class == inPath && len(rest) > 1:
			class = inQuery
		case c == '%' && len(rest) > 2 && isUpperHex(rest[1]) && isUpperHex(rest[2]):
			if classes[unhex(rest[1])<<4|unhex(rest[2])]&unreserved != 0 {
				return false
			}
			rest = rest[2:]
		default:
			return false
		}
		rest = rest[1:]
	}
	return true
}

// isDots reports whether the first segment of path is "." or "..".
func isDots(path string) bool {
	if path == "" || path[0] != '.' {
		return false
	}
	path = strings.TrimPrefix(path[1:], ".")
	return path == "" || path[0] == '/' || path[0] == '?'
}

func isUpperHex(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' }

func isHex(c byte) bool { return isUpperHex(c) || 'a' <= c && c <= 'f' }

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

// The character classes of RFC 3986. A path segment is pchar; a query is pchar, "/" and "?"; a host
// is unreserved without "~" and upper-case letters.
const (
	unreserved uint8 = 1 << iota
	inPath
	inQuery
	inHost
)

var classes = func() (t [256]uint8) {
	for c := range t {
		switch c := byte(c); {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', c == '-', c == '.', c == '_':
			t[c] = unreserved | inPath | inQuery | inHost
		case 'A' <= c && c <= 'Z', c == '~':
			t[c] = unreserved | inPath | inQuery
		case strings.IndexByte("!$&'()*+,;=:@", c) >= 0:
			t[c] = inPath | inQuery
		case c == '/', c == '?':
			t[c] = inQuery
		}
	}
	return t
}()
