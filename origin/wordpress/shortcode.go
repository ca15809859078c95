package wordpress

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// shortcode matches shortcodes of removed plugins, which WordPress does not replace: a name with
// attributes, a name of several words, or an end. Text in brackets that authors have written, such
// as [1], [sic] or [a link], does not match.
var shortcode = regexp.MustCompile(`\[/?[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+(?:\s[^\[\]]*)?/?\]` +
	`|\[[a-z][a-z0-9_-]*(?:\s+[a-z][a-z0-9_-]*\s*=\s*(?:"[^"\[\]]*"|'[^'\[\]]*'|[“”″][^“”″\[\]]*[“”″]|[^\s"'\[\]]+))+\s*/?\]` +
	`|\[/[a-z][a-z0-9_-]*\]`)

// plainCode matches a name in brackets without attributes, which is a shortcode if a matching end
// exists.
var plainCode = regexp.MustCompile(`\[([a-z][a-z0-9]*)\]`)

// ending matches the end of a shortcode.
var ending = regexp.MustCompile(`\[/[a-z][a-z0-9]*\]`)

// alone matches a shortcode without attributes that is the only text between two tags.
var alone = regexp.MustCompile(`^\s*\[[a-z][a-z0-9]*\]\s*$`)

// dropShortcodes removes shortcodes from HTML, except inside code.
func dropShortcodes(s string) string {
	if !strings.Contains(s, "[") {
		return s
	}
	ends := map[string]bool{}
	for _, end := range ending.FindAllString(s, -1) {
		ends[end] = true
	}
	drop := func(text string) string {
		text = shortcode.ReplaceAllString(text, "")
		return plainCode.ReplaceAllStringFunc(text, func(code string) string {
			if ends["[/"+code[1:]] {
				return ""
			}
			return code
		})
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	code := 0
	for {
		tt := z.Next()
		raw := string(z.Raw())
		if tt == html.ErrorToken {
			b.WriteString(raw)
			return b.String()
		}
		switch tt {
		case html.StartTagToken, html.EndTagToken:
			name, _ := z.TagName()
			switch string(name) {
			case "pre", "code", "kbd", "samp", "textarea", "script", "style", "math":
				if tt == html.StartTagToken {
					code++
				} else {
					code = max(0, code-1)
				}
			}
		case html.TextToken:
			if code == 0 && strings.Contains(raw, "[") {
				text := html.UnescapeString(raw)
				if short := drop(text); short != text {
					raw = html.EscapeString(short)
				} else if alone.MatchString(text) {
					raw = ""
				}
			}
		}
		b.WriteString(raw)
	}
}
