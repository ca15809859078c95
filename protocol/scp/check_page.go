package scp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/canon"
)

// metadata compares the first line with its schema (Collection Metadata Schema).
func metadata(m map[string]any, c *content) {
	member := func(name, rule, want string, required bool, ok func(string) bool) string {
		v, there := m[name]
		if !there && !required {
			return ""
		}
		c.about[rule] = true
		if s, is := v.(string); is && ok(s) {
			return s
		}
		c.note(rule, "line 1 (/collection/"+name+"): "+describe(v, there), want)
		return ""
	}
	isTime := func(s string) bool { _, ok := parseTime(s); return ok }
	const name, instant = "a string of letters, digits, - and _", "a date-time of RFC 3339"
	c.id = member("id", "metadata/id", name, true, isName)
	c.section = member("section", "metadata/section", name, true, isName)
	c.kind = member("type", "metadata/type", `"snapshot" or "delta"`, true, func(s string) bool { return s == "snapshot" || s == "delta" })
	if s := member("generated", "metadata/generated", instant, true, isTime); s != "" {
		c.generated, _ = parseTime(s)
	}
	if s := member("since", "metadata/since", instant+", in a delta", c.kind == "delta", isTime); s != "" {
		c.since, _ = parseTime(s)
	}
	member("version", "metadata/version", `"MAJOR.MINOR", such as "0.1"`, true, func(s string) bool {
		major, minor, _ := strings.Cut(s, ".")
		return isDigits(major) && isDigits(minor)
	})
	c.about["checksum/present"] = true
	if _, there := m["checksum"]; !there {
		c.note("checksum/present", "line 1 (/collection): no checksum", hashPrefix+" and 64 hexadecimal digits")
	}
	c.claimed = strings.ToLower(member("checksum", "checksum/form", hashPrefix+" and 64 lower-case hexadecimal digits", false, func(s string) bool {
		hex, found := strings.CutPrefix(s, hashPrefix)
		return found && len(hex) == len(noSum) && strings.Trim(hex, "0123456789abcdef") == ""
	}))
}

// examiner compares the line of a page with its schema (Page Object Schema).
type examiner struct {
	*content
	at     string // the line
	limits *OpenOptions
}

func (x *examiner) wrong(rule, pointer string, v any, there bool, want string) {
	x.note(rule, fmt.Sprintf("%s (%s): %s", x.at, short(pointer), describe(v, there)), want)
}

// check notes a value that fails a test.
func (x *examiner) check(ok bool, rule, pointer string, v any, want string) bool {
	if x.about[rule] = true; !ok {
		x.wrong(rule, pointer, v, true, want)
	}
	return ok
}

// str wants a string for which a test holds; nil: any.
func (x *examiner) str(rule, pointer string, v any, want string, test func(string) bool) {
	s, ok := v.(string)
	x.check(ok && (test == nil || test(s)), rule, pointer, v, want)
}

// array wants an array, and gives its elements.
func (x *examiner) array(rule, pointer string, v any, each func(pointer string, v any)) {
	list, ok := v.([]any)
	if !x.check(ok, rule, pointer, v, "an array") {
		return
	}
	for i, v := range list {
		each(pointer+"/"+strconv.Itoa(i), v)
	}
}

// has wants the members of an object.
func (x *examiner) has(rule, pointer string, m map[string]any, names ...string) {
	x.about[rule] = true
	for _, name := range names {
		if _, ok := m[name]; !ok {
			x.wrong(rule, pointer+"/"+name, nil, false, "the member is required")
		}
	}
}

func (x *examiner) page(m map[string]any) {
	x.has("page/required", "", m, requiredNames...)
	isTime := func(s string) bool { _, ok := parseTime(s); return ok }
	const text, instant = "a string", "a date-time of RFC 3339"
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v, rule, pointer := m[name], "page/"+name, "/"+name
		switch name {
		case "url":
			x.str(rule, pointer, v, "a URL of http or https", func(s string) bool {
				_, err := canon.URL(s)
				return err == nil && isAbsolute(s) && strings.HasPrefix(s, "http")
			})
		case "title", "description", "author":
			x.str(rule, pointer, v, text, nil)
		case "published", "modified":
			x.str(rule, pointer, v, instant, isTime)
		case "language":
			x.str(rule, pointer, v, "a language tag", isLanguage[string])
		case "canonical":
			x.str(rule, pointer, v, "a URL of http or https", isAbsolute)
		case "schema":
			_, ok := v.(map[string]any)
			x.check(ok, rule, pointer, v, "an object")
		case "content":
			x.blocks(v)
		}
	}
}

func (x *examiner) blocks(v any) {
	list, ok := v.([]any)
	if !x.check(ok && len(list) > 0, "page/content", "/content", v, "an array of at least one block") {
		return
	}
	if n := len(list); !x.check(n <= x.limits.MaxBlocks, "limits/blocks", "/content", json.Number(strconv.Itoa(n)+" blocks"), strconv.Itoa(x.limits.MaxBlocks)+" at most") {
		list = list[:x.limits.MaxBlocks]
	}
	for i, v := range list {
		pointer := "/content/" + strconv.Itoa(i)
		m, ok := v.(map[string]any)
		if !x.check(ok, "blocks/type", pointer, v, "an object with a type") {
			continue
		}
		t, _ := m["type"].(string)
		needs, known := blockMembers(blockType(t))
		if !known {
			v, there := m["type"]
			x.about["blocks/type"] = true
			x.wrong("blocks/type", pointer+"/type", v, there, "one of the content block types")
			continue
		}
		rule := "blocks/" + t
		x.has(rule, pointer, m, needs...)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			x.blockMember(blockType(t), rule, pointer+"/"+name, name, m[name])
		}
	}
}

// blockMembers gives the members that a block needs, false for a type that is
// not the specification's.
func blockMembers(t blockType) (names []string, known bool) {
	switch t {
	case textBlock, quoteBlock:
		return []string{"text"}, true
	case headingBlock:
		return []string{"level", "text"}, true
	case linkBlock:
		return []string{"url", "text"}, true
	case imageBlock:
		return []string{"url", "alt"}, true
	case listBlock:
		return []string{"ordered", "items"}, true
	case codeBlock:
		return []string{"code"}, true
	case tableBlock:
		return []string{"rows"}, true
	case videoBlock, audioBlock:
		return []string{"name", "url"}, true
	}
	return nil, false
}

// isText reports whether a member of a block is any string.
func isText(t blockType, name string) bool {
	switch t {
	case textBlock:
		return name == "text"
	case headingBlock, linkBlock:
		return name == "text"
	case imageBlock:
		return name == "alt"
	case codeBlock:
		return name == "code" || name == "language"
	case quoteBlock:
		return name == "text" || name == "citation"
	case videoBlock, audioBlock:
		return name == "name" || name == "summary" || name == "transcript"
	}
	return false
}

func (x *examiner) blockMember(t blockType, rule, pointer, name string, v any) {
	text := func(pointer string, v any) { x.str(rule, pointer, v, "a string", nil) }
	media := t == videoBlock || t == audioBlock
	switch {
	case isText(t, name):
		text(pointer, v)
	case name == "url" && (t == linkBlock || t == imageBlock):
		x.url(pointer, v)
	case name == "rel" && t == linkBlock, name == "items" && t == listBlock:
		x.array(rule, pointer, v, text)
	case name == "rows" && t == tableBlock:
		x.array(rule, pointer, v, func(pointer string, v any) { x.array(rule, pointer, v, text) })
	case name == "ordered" && t == listBlock:
		_, ok := v.(bool)
		x.check(ok, rule, pointer, v, "true or false")
	case name == "level" && t == headingBlock:
		if x.whole(rule, pointer, v) {
			n := v.(json.Number).String()
			level, err := strconv.ParseFloat(n, 64)
			x.check(err == nil && level >= 1 && level <= 6, "blocks/heading-level", pointer, v, "1 to 6")
		}
	case media:
		x.mediaMember(t, rule, pointer, name, v)
	}
}

func (x *examiner) mediaMember(t blockType, rule, pointer, name string, v any) {
	video := t == videoBlock
	switch {
	case name == "url":
		x.sources(rule, pointer, v, video)
	case name == "duration":
		x.str("blocks/duration", pointer, v, "a duration in hours, minutes and seconds, such as PT5M20S", isDuration[string])
	case name == "icon":
		m, ok := v.(map[string]any)
		if !x.check(ok, "blocks/icon", pointer, v, "an object") {
			return
		}
		if kind, ok := m["type"]; ok {
			x.check(kind == "Image", "blocks/icon", pointer+"/type", kind, `"Image"`)
		}
		if u, ok := m["url"]; ok {
			x.url(pointer+"/url", u)
		}
	case name == "chapters":
		x.objects("blocks/chapters", pointer, v, []string{"time", "title"}, func(pointer, name string, v any) {
			switch name {
			case "time":
				x.natural("blocks/chapters", pointer, v)
			case "title":
				x.str("blocks/chapters", pointer, v, "a string", nil)
			}
		})
	case video && name == "captions":
		x.objects("blocks/captions", pointer, v, []string{"language", "url", "label"}, func(pointer, name string, v any) {
			switch name {
			case "url":
				x.url(pointer, v)
			case "language", "label":
				x.str("blocks/captions", pointer, v, "a string", nil)
			}
		})
	case video && (name == "width" || name == "height"):
		x.natural(rule, pointer, v)
	case !video && (name == "attributedTo" || name == "partOf"):
		if _, object := v.(map[string]any); !object { // the text allows what the schema does not
			x.str(rule, pointer, v, "a name, or an object with one", nil)
		}
	}
}

// sources are the URLs of a video or an audio: one string, or objects.
func (x *examiner) sources(rule, pointer string, v any, video bool) {
	if _, one := v.(string); one {
		x.url(pointer, v)
		return
	}
	list, ok := v.([]any)
	if !x.check(ok && len(list) > 0, rule, pointer, v, "a URL, or an array of at least one object") {
		return
	}
	x.objects(rule, pointer, v, []string{"href", "mediaType"}, func(pointer, name string, v any) {
		switch {
		case name == "href":
			x.url(pointer, v)
		case name == "mediaType", name == "rel" && video:
			x.str(rule, pointer, v, "a string", nil)
		}
	})
}

// objects wants an array of objects that have some members.
func (x *examiner) objects(rule, pointer string, v any, names []string, each func(pointer, name string, v any)) {
	x.array(rule, pointer, v, func(pointer string, v any) {
		m, ok := v.(map[string]any)
		if !x.check(ok, rule, pointer, v, "an object") {
			return
		}
		x.has(rule, pointer, m, names...)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			each(pointer+"/"+name, name, m[name])
		}
	})
}

func (x *examiner) url(pointer string, v any) {
	x.str("blocks/url", pointer, v, "a URL of http or https", isAbsolute)
}

func (x *examiner) whole(rule, pointer string, v any) bool {
	n, ok := v.(json.Number)
	return x.check(ok && isWhole([]byte(n)), rule, pointer, v, "a whole number")
}

func (x *examiner) natural(rule, pointer string, v any) {
	if n, ok := v.(json.Number); x.whole(rule, pointer, v) && ok {
		x.check(!strings.HasPrefix(n.String(), "-") || slices.Contains([]string{"-0", "-0.0"}, n.String()), rule, pointer, v, "a number that is not negative")
	}
}

// describe gives a JSON value for a finding.
func describe(v any, there bool) string {
	if !there {
		return "nothing"
	}
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case string:
		return strconv.Quote(short(v))
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}
