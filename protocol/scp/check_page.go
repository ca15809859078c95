package scp

import (
	"fmt"
	"strconv"
	"strings"
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
	isTime := func(s string) bool { _, ok := parseTime([]byte(s)); return ok }
	const name, instant = "a string of letters, digits, - and _", "a date-time of RFC 3339"
	c.id = member("id", "metadata/id", name, true, isName)
	c.section = member("section", "metadata/section", name, true, isName)
	c.kind = member("type", "metadata/type", `"snapshot" or "delta"`, true, func(s string) bool { return s == "snapshot" || s == "delta" })
	if s := member("generated", "metadata/generated", instant, true, isTime); s != "" {
		c.generated, _ = parseTime([]byte(s))
	}
	if s := member("since", "metadata/since", instant+", in a delta", c.kind == "delta", isTime); s != "" {
		c.since, _ = parseTime([]byte(s))
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
