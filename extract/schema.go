package extract

import (
	"bytes"
	"encoding/json"
	"strings"

	"golang.org/x/net/html"
)

// The limits of JSON-LD that is kept, for one page.
const (
	maxSchemas    = 200
	maxSchemaSize = 1 << 20
)

// schemas gives the JSON-LD objects of a page, one element each: the elements
// of arrays and of @graph stand alone, with the context of what they were in.
// What is no JSON is left out.
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
				var whole bytes.Buffer
				whole.WriteString(`{"@context":`)
				if json.Compact(&whole, context) != nil {
					return
				}
				whole.WriteByte(',')
				whole.Write(c[1:])
				c = whole.Bytes()
			}
			if size += len(c); size > maxSchemaSize || seen[string(c)] {
				return
			}
			seen[string(c)] = true
			out = append(out, c)
		}
	}
	for _, s := range scripts {
		if s.FirstChild == nil {
			continue
		}
		text := []byte(trimScript(s.FirstChild.Data))
		if json.Valid(text) {
			add(text, nil, 0)
		}
	}
	return out
}

// trimScript leaves out the comments that some tools put around data.
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

// thing is what is read of a JSON-LD object.
type thing struct {
	types  []string
	values map[string]any
}

func things(raws []json.RawMessage) []thing {
	var out []thing
	for _, raw := range raws {
		var v map[string]any
		if json.Unmarshal(raw, &v) == nil {
			out = append(out, thing{types: texts(v["@type"]), values: v})
			if main, ok := v["mainEntity"].(map[string]any); ok {
				out = append(out, thing{types: texts(main["@type"]), values: main})
			}
		}
	}
	return out
}

func (t *thing) is(suffixes ...string) bool {
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

func (t *thing) isArticle() bool {
	return t.is("*Article", "*Posting", "Report", "Review", "Recipe", "HowTo", "LiveBlogPosting", "Question")
}

func (t *thing) text(key string) string {
	if l := texts(t.values[key]); len(l) > 0 {
		return l[0]
	}
	return ""
}

// texts gives the texts of a JSON-LD value: a string, an object with a name,
// or a list of them.
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

// oneLine decodes character references that were written twice and folds
// white space.
func oneLine(s string) string {
	if strings.Contains(s, "&") && strings.Contains(s, ";") {
		s = html.UnescapeString(s)
	}
	return strings.Join(strings.Fields(s), " ")
}
