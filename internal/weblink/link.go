package weblink

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/canon"
)

// Link is one web link of a response.
type Link struct {
	URL   string   // URL of the target: absolute and canonical
	Rel   []string // relation types, in lower case
	Type  string   // media type of the target, without parameters, in lower case, or "" if unknown
	Title string   // title parameter, unchanged
}

// Is reports whether the link has a relation type and a media type, both in lower case. If typ is
// empty, any media type matches.
func (l Link) Is(rel, typ string) bool {
	return slices.Contains(l.Rel, rel) && (typ == "" || l.Type == typ)
}

// newLink returns a link from the parameters of a field, or the attributes of an element, which have
// the same names. It reports false if the target is invalid.
func newLink(base *url.URL, target string, params map[string]string) (Link, bool) {
	u, err := canon.Resolve(base, target)
	if err != nil {
		return Link{}, false
	}
	return Link{u, strings.Fields(strings.ToLower(params["rel"])), mediaType(params["type"]), params["title"]}, true
}

// mediaType returns a media type without its parameters, in lower case.
func mediaType(s string) string {
	if mt, _, _ := mime.ParseMediaType(s); mt != "" {
		return mt // even if a parameter is invalid
	}
	return strings.ToLower(s)
}

// Header returns the links in the Link fields of a response, in order (RFC 8288, section 3). base
// is the URL of the response. The rest of a field after a syntax error is ignored. Header skips
// links with an anchor, because they have another context. If base is nil, it also skips relative
// targets.
func Header(h http.Header, base *url.URL) []Link {
	var out []Link
	for _, field := range h.Values("Link") {
		for {
			field = strings.TrimLeft(field, " \t,")
			target, rest, ok := strings.Cut(strings.TrimPrefix(field, "<"), ">")
			if !strings.HasPrefix(field, "<") || !ok {
				break
			}
			var params map[string]string
			params, field = parameters(rest)
			if _, elsewhere := params["anchor"]; elsewhere {
				continue
			}
			if l, ok := newLink(base, target, params); ok {
				out = append(out, l)
			}
		}
	}
	return out
}

// parameters reads the parameters of one link: the first of each name, with the name in lower
// case. It also returns the rest of the text.
func parameters(s string) (params map[string]string, rest string) {
	params = map[string]string{}
	for {
		s = strings.TrimLeft(s, " \t")
		if !strings.HasPrefix(s, ";") {
			return params, s
		}
		s = strings.TrimLeft(s[1:], " \t")
		name := until(s, "=;, \t")
		s = strings.TrimLeft(s[len(name):], " \t")
		value := ""
		if strings.HasPrefix(s, "=") {
			value, s = parameterValue(strings.TrimLeft(s[1:], " \t"))
		}
		name = strings.ToLower(name)
		if _, twice := params[name]; !twice && name != "" {
			params[name] = value
		}
	}
}

// parameterValue reads a token or a quoted string (RFC 9110, section 5.6.4).
func parameterValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		value = until(s, ";, \t")
		return value, s[len(value):]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:]
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// until returns the text before the first of the characters.
func until(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}
