package extract

import (
	"bytes"
	"encoding/json"
	"strings"

	"golang.org/x/net/html"
)

// Limits of the JSON-LD of one page.
const (
	maxSchemas    = 200
	maxSchemaSize = 1 << 20
)

// schemas returns the JSON-LD objects of a page as separate elements: the elements of arrays and of
// @graph become objects with the context of their parent. It drops invalid JSON.
func schemas(scripts []*html.Node) []json.RawMessage {
	var out []json.RawMessage
	seen := map[string]bool{}
	size := 0
	var add func(raw json.RawMessage, context json.RawMessage, depth int)
	add = func(raw json.RawMessage, context json.RawMessage, depth int) {
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || depth > 4 || len(out) >= maxSchemas {
			return
		}
		switch raw[0] {
		case '[':
			var list []json.RawMessage
			if json.Unmarshal(raw, &list) == nil {
				for _, e := range list {
					add(e, context, depth+1)
				}
			}
		case '{':
			var outer struct {
				Context json.RawMessage `json:"@context"`
				Graph   json.RawMessage `json:"@graph"`
			}
			if json.Unmarshal(raw, &outer) != nil {
				return
			}
			if g := bytes.TrimSpace(outer.Graph); len(g) > 0 && (g[0] == '[' || g[0] == '{') {
				if outer.Context != nil {
					context = outer.Context
				}
				add(g, context, depth+1)
				return
			}
			var b bytes.Buffer
			if json.Compact(&b, raw) != nil || b.Len() <= 2 {
				return
			}
			c := b.Bytes()
			if outer.Context == nil && context != nil {
				var merged bytes.Buffer
				merged.WriteString(`{"@context":`)
				if json.Compact(&merged, context) != nil {
					return
				}
				merged.WriteByte(',')
				merged.Write(c[1:])
				c = merged.Bytes()
			}
			if size += len(c); size > maxSchemaSize || seen[string(c)] {
				return
			}
			seen[string(c)] = true
			out = append(out, c)
		}
	}
	for _, s := range scripts {
		text := attr(s, "content") // the script is a meta element
		if s.FirstChild != nil {
			text = s.FirstChild.Data
		}
		if text != "" {
			add(repaired(trimScript(text)), nil, 0)
		}
	}
	return out
}

// repaired returns valid JSON, or nil if the text cannot be repaired. It removes trailing commas.
// In strings, it escapes line ends and tabs, and drops other control characters.
func repaired(text string) []byte {
	raw := []byte(text)
	if json.Valid(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw)+64)
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case '"':
			end := stringEnd(raw, i)
			out = appendString(out, raw[i:end])
			i = end - 1
		case '}', ']':
			if n := len(bytes.TrimRight(out, " \t\r\n")); n > 0 && out[n-1] == ',' {
				out = out[:n-1]
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	if !json.Valid(out) {
		return nil
	}
	return out
}

// stringEnd returns the end of the JSON string that starts at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// appendString appends a JSON string. It escapes line feeds and tabs, and drops other control
// characters.
func appendString(out, s []byte) []byte {
	for _, c := range s {
		switch {
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c < ' ':
			// Drop other control characters, such as a carriage return.
		default:
			out = append(out, c)
		}
	}
	return out
}

// trimScript removes the comment delimiters, CDATA markers and trailing semicolon that some tools
// put around the data.
func trimScript(s string) string {
	s = strings.TrimSpace(s)
	for _, p := range []string{"//<![CDATA[", "/*<![CDATA[*/", "<![CDATA[", "<!--"} {
		s = strings.TrimSpace(strings.TrimPrefix(s, p))
	}
	for _, p := range []string{"//]]>", "/*]]>*/", "]]>", "-->", ";"} {
		s = strings.TrimSpace(strings.TrimSuffix(s, p))
	}
	return s
}

// ldObject is a parsed JSON-LD object.
type ldObject struct {
	types  []string
	values map[string]any
}

func ldObjects(raws []json.RawMessage) []ldObject {
	var out []ldObject
	for _, raw := range raws {
		var v map[string]any
		if json.Unmarshal(raw, &v) == nil {
			out = append(out, ldObject{types: texts(v["@type"]), values: v})
			if main, ok := v["mainEntity"].(map[string]any); ok {
				out = append(out, ldObject{types: texts(main["@type"]), values: main})
			}
		}
	}
	return out
}

func (t *ldObject) is(suffixes ...string) bool {
	for _, typ := range t.types {
		typ = typ[strings.LastIndexAny(typ, "/:#")+1:]
		for _, s := range suffixes {
			if typ == s || strings.HasPrefix(s, "*") && strings.HasSuffix(typ, s[1:]) {
				return true
			}
		}
	}
	return false
}

func (t *ldObject) isArticle() bool {
	return t.is("*Article", "*Posting", "Report", "Review", "Recipe", "HowTo", "LiveBlogPosting", "Question")
}

func (t *ldObject) text(key string) string {
	if l := texts(t.values[key]); len(l) > 0 {
		return l[0]
	}
	return ""
}

// texts returns the texts of a JSON-LD value: of a string, of an object with a name, or of a list
// of these.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		if s := oneLine(v); s != "" {
			return []string{s}
		}
	case map[string]any:
		for _, key := range []string{"name", "@value", "headline"} {
			if l := texts(v[key]); len(l) > 0 {
				return l
			}
		}
	case []any:
		var out []string
		for _, e := range v {
			if len(out) < 100 {
				if _, nested := e.([]any); !nested {
					out = append(out, texts(e)...)
				}
			}
		}
		return out
	}
	return nil
}

// oneLine decodes character references that were escaped twice, and collapses white space.
func oneLine(s string) string {
	if strings.Contains(s, "&") && strings.Contains(s, ";") {
		s = html.UnescapeString(s)
	}
	return folded(s)
}
