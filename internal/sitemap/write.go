package sitemap

import (
	"encoding/xml"
	"time"
)

// Namespace is an XML namespace with the prefix of its elements.
type Namespace struct{ Prefix, URI string }

// namespace is the namespace of sitemaps.org, protocol 0.9.
const namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"

// begin returns the beginning of a sitemap or of an index of sitemaps.
func begin(root, head string, in []Namespace) []byte {
	s := xml.Header + "<" + root + ` xmlns="` + namespace + `"`
	for _, n := range in {
		s += "\n  xmlns:" + n.Prefix + `="` + Escape(n.URI) + `"`
	}
	return []byte(s + ">\n" + head)
}

// end returns the end of a sitemap or of an index of sitemaps.
func end(root string) []byte { return []byte("</" + root + ">\n") }

// appendEntry appends a page or a sitemap with its modification time to dst; the zero time is
// omitted.
func appendEntry(dst []byte, element, u string, modified time.Time) []byte {
	dst = append(dst, "<"+element+"><loc>"+Escape(u)+"</loc>"...)
	if !modified.IsZero() {
		dst = append(modified.UTC().AppendFormat(append(dst, "<lastmod>"...), time.RFC3339), "</lastmod>"...)
	}
	return append(dst, "</"+element+">\n"...)
}

// Escape escapes a text for an XML attribute or element. Characters that XML does not allow become
// U+FFFD.
func Escape(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7F || c == '&' || c == '<' || c == '>' || c == '"' || c == '\'' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	b := new(builder)
	_ = xml.EscapeText(b, []byte(s)) // a builder never fails
	return string(*b)
}

// builder is a writer that never fails.
type builder []byte

func (b *builder) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
