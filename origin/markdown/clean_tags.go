package markdown

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/commonmark"
)

var (
	importLine = regexp.MustCompile(`^import\s+(?:['"{*]|[\w$]+\s*(?:,|\sfrom\s))`)
	exportLine = regexp.MustCompile(`^export\s+(?:const|let|var|function|default|async|class|\{|\*)`)
	component  = regexp.MustCompile(`^</?(?:[A-Z][\w.]*|[a-z]\w*\.[\w.]+)?[\s/>]`)
	tagName    = regexp.MustCompile(`^[\w./-]+`)
)

// text writes lines of text, and replaces or omits the tags in them.
func (c *cleaner) text(s string) {
	clear(c.absent)
	for i := 0; i < len(s); {
		start := i == 0 || s[i-1] == '\n'
		if c.hidden != "" {
			i = c.hide(s, i)
			continue
		}
		if c.raw {
			end := rawTag.FindStringIndex(s[i:])
			if end == nil {
				c.out = append(c.out, s[i:]...)
				return
			}
			c.out = append(c.out, s[i:i+end[0]]...)
			i += end[1]
			c.raw = false
			continue
		}
		n := 0
		switch s[i] {
		case '\\':
			if i+1 < len(s) {
				c.out = append(c.out, s[i:i+2]...)
				i += 2
				continue
			}
		case '`':
			n = c.span(s, i)
		case '$':
			n = c.formula(s, i)
		case '{':
			n = c.brace(s, i)
		case '<':
			if c.script && component.MatchString(s[i:min(len(s), i+200)]) {
				n = c.component(s, i)
			}
		case 'i', 'e':
			if c.script && start && (i < 2 || s[i-2] == '\n') && (importLine.MatchString(line(s[i:])) || exportLine.MatchString(line(s[i:]))) {
				n = module(s[i:])
			}
		}
		if n == 0 {
			// Most bytes do not start a tag.
			n = 1
			for i+n < len(s) && strings.IndexByte("\\`${<ie", s[i+n]) < 0 {
				n++
			}
			c.out = append(c.out, s[i:i+n]...)
		}
		i += n
	}
}

// hide omits text up to the tag that ends the omission, and returns the offset after that tag.
func (c *cleaner) hide(s string, i int) int {
	for at := i; ; {
		k := strings.Index(s[at:], "{")
		if k < 0 {
			return len(s)
		}
		at += k
		if m := endTag.FindStringSubmatch(s[at:min(len(s), at+200)]); m != nil && strings.HasPrefix(s[at:], m[0]) && m[1]+m[2] == c.hidden {
			c.hidden = ""
			if end := strings.Index(s[at:], "}"); end >= 0 {
				at += end + 1
				return at + len(s[at:]) - len(strings.TrimLeft(s[at:], "}"))
			}
			return len(s)
		}
		at++
	}
}

// find returns the offset of end at or after i, or -1 if end is absent. It caches absent ends, so
// that a text with many unclosed tags is not searched again for each of them.
func (c *cleaner) find(s string, i int, end string) int {
	if from, ok := c.absent[end]; ok && i >= from {
		return -1
	}
	k := strings.Index(s[i:], end)
	if k < 0 {
		c.absent[end] = i
		return -1
	}
	return i + k
}

// span copies inline code, or backticks that do not begin code, and returns their length.
func (c *cleaner) span(s string, i int) int {
	n := 1
	for i+n < len(s) && s[i+n] == '`' {
		n++
	}
	mark := s[i : i+n]
	end := -1
	for at := i + n; n < 100; {
		k := c.find(s, at, mark)
		if k < 0 {
			break
		}
		if k+n >= len(s) || s[k+n] != '`' {
			end = k + n
			break
		}
		for at = k; at < len(s) && s[at] == '`'; at++ {
		}
	}
	if end < 0 || strings.Contains(s[i:min(end, i+10_000)], "\n\n") || end > i+10_000 {
		c.out = append(c.out, mark...)
		return n
	}
	c.literalSpan(s[i:end])
	return end - i
}

func (c *cleaner) literalSpan(s string) {
	if c.hugo {
		s = escapedTag.ReplaceAllString(s, "{{$1$2$3}}")
	}
	c.out = append(c.out, s...)
}

// formula copies TeX, which uses braces itself.
func (c *cleaner) formula(s string, i int) int {
	if !c.braces {
		return 0
	}
	mark := "$"
	if strings.HasPrefix(s[i:], "$$") {
		mark = "$$"
	}
	end := c.find(s, i+len(mark), mark)
	if end < 0 || end > i+5000 || mark == "$" && strings.Contains(s[i:end], "\n") {
		return 0
	}
	c.out = append(c.out, s[i:end+len(mark)]...)
	return end + len(mark) - i
}

// brace replaces a construct that starts with "{" and returns its length, or 0 if it is text.
func (c *cleaner) brace(s string, i int) int {
	rest := s[i:]
	switch {
	case c.hugo && (strings.HasPrefix(rest, "{{<") || strings.HasPrefix(rest, "{{%")):
		end := c.find(s, i+3, map[byte]string{'<': ">}}", '%': "%}}"}[rest[2]])
		if end < 0 {
			return 0
		}
		if inner := s[i+3 : end]; strings.HasPrefix(inner, "/*") && strings.HasSuffix(inner, "*/") && len(inner) >= 4 {
			c.out = append(append(append(c.out, s[i:i+3]...), inner[2:len(inner)-2]...), s[end:end+3]...)
		} else {
			c.tag(strings.Trim(inner, "- \t\n"), s, i, end+3)
		}
		return end + 3 - i
	case c.hugo && strings.HasPrefix(rest, "{{/*"), c.hugo && strings.HasPrefix(rest, "{{- /*"):
		if end := c.find(s, i, "}}"); end >= 0 {
			return end + 2 - i
		}
	case c.liquid && strings.HasPrefix(rest, "{%"):
		end := c.find(s, i+2, "%}")
		if end < 0 {
			return 0
		}
		c.liquidTag(strings.Trim(s[i+2:end], "- \t\n"), s, i, end+2)
		return end + 2 - i
	case c.values && strings.HasPrefix(rest, "{{"):
		if end := c.find(s, i+2, "}}"); end >= 0 {
			if v, ok := c.value(strings.Trim(s[i+2:end], "- \t\n")); ok {
				c.out = append(c.out, v...)
			} else {
				c.omitValue(s, i, end+2, false)
			}
			return end + 2 - i
		}
	case c.script && strings.HasPrefix(rest, "{/*"):
		if end := c.find(s, i, "*/}"); end >= 0 {
			return end + 3 - i
		}
	case c.braces && !strings.HasPrefix(rest, "{#"):
		if end := balanced(rest); end > 0 {
			inner := strings.TrimSpace(rest[1 : end-1])
			if n := len(inner); n >= 2 && strings.IndexByte("'\"`", inner[0]) >= 0 && inner[n-1] == inner[0] {
				c.out = append(c.out, inner[1:n-1]...)
			} else if !strings.HasPrefix(inner, "/*") {
				c.omitValue(s, i, i+end, false)
			}
			return end
		}
	}
	return 0
}

// tag replaces a shortcode that starts at s[from].
func (c *cleaner) tag(inner, s string, from, end int) {
	if name, ok := strings.CutPrefix(inner, "/"); ok {
		c.close(strings.TrimSpace(name))
		return
	}
	name := tagName.FindString(inner)
	args := arguments(strings.TrimSuffix(strings.TrimPrefix(inner, name), "/"))
	switch name {
	case "ref", "relref":
		c.address(c.l.reference(args.first("path")))
	case "comment":
		if c.ends[name] > 0 {
			c.hidden = name
		}
	case "figure", "img", "image":
		c.figure(args)
	case "youtube":
		c.frame("https://www.youtube.com/embed/"+url.PathEscape(args.first("id")), args["title"])
	case "vimeo":
		c.frame("https://player.vimeo.com/video/"+url.PathEscape(args.first("id")), args["title"])
	case "tweet", "x":
		if args["user"] != "" {
			c.autolink("https://x.com/" + args["user"] + "/status/" + args["id"])
		}
	case "instagram":
		c.autolink("https://www.instagram.com/p/" + args.first("id") + "/")
	case "gist":
		c.autolink("https://gist.github.com/" + args["0"] + "/" + args["1"])
	case "tab":
		c.label(args.first("header", "name", "title", "tabname"))
	case "details", "expand", "collapse", "spoiler":
		c.label(args.first("summary", "title", "text"))
	case "param":
		name := args.first("name")
		v, ok := valueOf(c.m, name)
		if !ok {
			v, ok = valueOf(c.l.s.values, name)
		}
		if ok {
			c.out = append(c.out, v...)
			break
		}
		fallthrough
	default:
		if c.callout(name, args, s, from); c.ends[name] == 0 && !strings.HasSuffix(inner, "/") {
			c.omitValue(s, from, end, false)
		}
	}
}

// liquidTag replaces a Liquid tag.
func (c *cleaner) liquidTag(inner, s string, from, to int) {
	name := tagName.FindString(inner)
	rest := strings.TrimSpace(strings.TrimPrefix(inner, name))
	switch name {
	case "link", "post_url":
		c.address(c.l.reference(strings.Trim(rest, `"'`)))
	case "raw":
		c.raw = c.ends["raw"] > 0
	case "comment":
		if c.ends[name] > 0 {
			c.hidden = name
		}
	case "tab":
		c.label(arguments(rest).first("title"))
	case "hint", "note", "tip", "warning":
		c.callout(name, arguments(rest), s, from)
	case "for", "capture", "tablerow", "macro":
		if c.ends[name] > 0 {
			c.hidden = name
		}
		c.omitValue(s, from, to, name != "for")
	case "if", "unless", "case", "when", "else", "elsif", "elif", "assign", "set", "break", "continue", "import", "from":
		c.omitValue(s, from, to, true)
	default:
		if end, ok := strings.CutPrefix(name, "end"); ok {
			c.close(end)
		} else if c.ends[name] == 0 {
			c.omitValue(s, from, to, false)
		}
	}
}

// value returns the value of a Liquid expression. ok is false if the value is unknown.
func (c *cleaner) value(expr string) (v string, ok bool) {
	base, _ := url.Parse(c.l.s.base)
	prefix, origin := strings.TrimSuffix(base.EscapedPath(), "/"), ""
	if c.l.s.base != noBase {
		origin = base.Scheme + "://" + base.Host
	}
	parts := strings.Split(expr, "|")
	v = strings.TrimSpace(parts[0])
	switch name, site := strings.CutPrefix(v, "site."); {
	case len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0]:
		v, ok = v[1:len(v)-1], true
	case v == "site.baseurl":
		v, ok = prefix, true
	case v == "site.url":
		v, ok = origin, true
	case strings.HasPrefix(v, "page."):
		v, ok = valueOf(c.m, strings.TrimPrefix(v, "page."))
	case site || c.l.s.macros:
		v, ok = valueOf(c.l.s.values, name)
	}
	for _, f := range parts[1:] {
		switch f = strings.TrimSpace(f); f {
		case "relative_url":
			v = prefix + "/" + strings.TrimPrefix(v, "/")
		case "absolute_url":
			v = canon.Absolute(c.l.s.base, "/"+strings.TrimPrefix(v, "/"))
		case "escape", "xml_escape", "strip", "markdownify":
		default:
			return "", false
		}
	}
	return v, ok
}

// address writes the URL of a link. Before Jekyll 4, link tags returned paths, so many texts
// contain the base before the tag.
func (c *cleaner) address(u string) {
	if base, _ := url.Parse(c.l.s.base); c.values {
		for _, p := range []string{strings.TrimSuffix(c.l.s.base, "/"), strings.TrimSuffix(base.EscapedPath(), "/")} {
			if p != "" {
				c.out = bytes.TrimSuffix(c.out, []byte(p))
			}
		}
	}
	c.out = append(c.out, strings.NewReplacer("(", `\(`, ")", `\)`).Replace(u)...)
}

func (c *cleaner) autolink(u string) {
	if u, err := canon.URL(u); err == nil {
		c.out = append(c.out, "<"+u+">"...)
	}
}

// label writes the displayed name of a component as a separate line.
func (c *cleaner) label(s string) {
	if s = strings.Join(strings.Fields(s), " "); s != "" {
		c.out = append(c.out, "\n\n**"+escapeText(s)+"**\n\n"...)
	}
}

// escapeText escapes text so that Markdown does not interpret it as markup.
func escapeText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 && strings.ContainsRune("\\`*_{}[]<>#|~$&!:", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (c *cleaner) figure(args args) {
	src := args.first("src")
	if src == "" {
		return
	}
	caption := strings.TrimSpace(args["title"] + " " + args["caption"])
	c.out = fmt.Appendf(c.out, "\n\n<figure><img src=\"%s\" alt=\"%s\">", html.EscapeString(src), html.EscapeString(args["alt"]))
	if caption != "" {
		c.out = append(c.out, "<figcaption>"+html.EscapeString(caption)+"</figcaption>"...)
	}
	c.out = append(c.out, "</figure>\n\n"...)
}

func (c *cleaner) frame(src, title string) {
	if !strings.HasSuffix(src, "/") {
		c.out = fmt.Appendf(c.out, "\n\n<iframe src=\"%s\" title=\"%s\"></iframe>\n\n", html.EscapeString(src), html.EscapeString(title))
	}
}

// callout opens a callout if the tag starts a line and has an end later.
func (c *cleaner) callout(name string, args args, s string, from int) {
	switch name {
	case "notice", "alert", "hint", "callout", "admonition", "note", "tip", "info", "warning", "danger", "caution", "important", "attention", "Admonition":
	default:
		return
	}
	if c.ends[name] == 0 && name != "Admonition" || strings.TrimSpace(s[strings.LastIndexByte(s[:from], '\n')+1:from]) != "" {
		return
	}
	kind := commonmark.CalloutKind(strings.ToLower(cmp.Or(args["type"], args["style"], args["color"], args["0"])))
	title := cmp.Or(args["title"], args["1"])
	if kind == "" {
		kind = cmp.Or(commonmark.CalloutKind(strings.ToLower(name)), "note")
		title = cmp.Or(args["title"], args["0"])
	}
	c.open = append(c.open, name)
	c.out = append(c.out, "\n\n:::"+kind+" "+strings.Join(strings.Fields(title), " ")+"\n\n"...)
}

// close ends a callout that callout has opened.
func (c *cleaner) close(name string) {
	if n := len(c.open); n > 0 && c.open[n-1] == name {
		c.open = c.open[:n-1]
		c.out = append(c.out, "\n\n:::\n\n"...)
	}
}
