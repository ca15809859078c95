package web

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// maxMatter is the maximum size of front matter in bytes. Longer front matter is treated as text.
const maxMatter = 64 << 10

// pageKinds are the kinds of pages that front matter may contain.
var pageKinds = []millrace.PageKind{
	millrace.Article, millrace.Documentation, millrace.Service, millrace.Forum, millrace.Product, millrace.Listing,
	millrace.Collection, millrace.Archive,
}

// readMatter sets the fields of a page from the front matter at the beginning of text, and returns
// the rest. It reads the forms that sites use: plain or quoted strings, and lists of strings. It
// never fails: it skips other values, and treats front matter without an end as text.
func readMatter(p *millrace.Page, text []byte) (rest []byte) {
	lines, rest, ok := cutMatter(text)
	if !ok {
		return text
	}
	for i := 0; i < len(lines); i++ {
		name, value, ok := strings.Cut(lines[i], ":")
		if !ok || name == "" || strings.ContainsAny(name[:1], " \t-#") || value != "" && value[0] != ' ' && value[0] != '\t' {
			continue
		}
		var below []string
		for i+1 < len(lines) && (lines[i+1] == "" || strings.ContainsAny(lines[i+1][:1], " \t-")) {
			i++
			below = append(below, strings.TrimSpace(lines[i]))
		}
		setField(p, strings.ToLower(strings.TrimSpace(name)), values(strings.TrimSpace(value), below))
	}
	return rest
}

// cutMatter returns the lines of the front matter, and the rest.
func cutMatter(text []byte) (lines []string, rest []byte, ok bool) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != "---" {
		return nil, nil, false
	}
	for size := 0; size < maxMatter && len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		size += len(line) + 1
		line = bytes.TrimRight(line, " \t\r")
		if s := string(line); s == "---" || s == "..." {
			return lines, rest, true
		}
		lines = append(lines, string(line))
	}
	return nil, nil, false
}

// values returns the value after a name and on the lines below it.
func values(value string, below []string) []string {
	switch {
	case value == "" || value == "[" || value[0] == '|' || value[0] == '>':
		var list, words []string
		for _, line := range below {
			if item, ok := strings.CutPrefix(line, "- "); ok && value == "" {
				list = append(list, scalar(item))
			} else if line != "" {
				words = append(words, line)
			}
		}
		switch {
		case value == "[":
			return flow("[" + strings.Join(words, " "))
		case list == nil && value != "":
			return []string{strings.Join(words, " ")}
		}
		return list // a mapping has no usable value
	case value[0] == '[':
		return flow(value)
	case value[0] == '{':
		return nil
	}
	if value[0] != '"' && value[0] != '\'' { // a plain scalar may continue on the next lines
		for _, line := range below {
			if line == "" || strings.HasPrefix(line, "- ") {
				break
			}
			value += " " + line
		}
	}
	return []string{scalar(value)}
}

// flow returns the strings of a list in brackets.
func flow(list string) []string {
	var out []string
	if json.Unmarshal([]byte(list), &out) == nil {
		return out
	}
	list = strings.TrimSuffix(strings.TrimPrefix(list, "["), "]")
	for item := range strings.SplitSeq(list, ",") {
		out = append(out, scalar(strings.TrimSpace(item)))
	}
	return out
}

// scalar returns the value of a plain or quoted string.
func scalar(s string) string {
	switch {
	case s == "~" || s == "null":
		return ""
	case strings.HasPrefix(s, `"`):
		var out string
		if json.Unmarshal([]byte(s), &out) == nil {
			return out
		}
		return strings.Trim(s, `"`)
	case strings.HasPrefix(s, "'"):
		return strings.ReplaceAll(strings.TrimSuffix(s[1:], "'"), "''", "'")
	}
	s, _, _ = strings.Cut(s, " #")
	return strings.TrimSpace(s)
}

// setField sets the field with the given name, if there is such a field.
func setField(p *millrace.Page, name string, list []string) {
	value := ""
	if len(list) > 0 {
		value = list[0]
	}
	line := func(field millrace.Fields, to *string) {
		*to = cleanLine(value)
		p.Known |= field
	}
	when := func(field millrace.Fields, to *time.Time) {
		if t := parseTime(value); !t.IsZero() {
			*to = t
			p.Known |= field
		}
	}
	switch name {
	case "title":
		line(millrace.FieldTitle, &p.Title)
	case "description":
		line(millrace.FieldDescription, &p.Description)
	case "url", "canonical", "canonical_url", "source_url":
		base, err := url.Parse(p.URL)
		if err != nil {
			return
		}
		u, err := canon.Resolve(base, value)
		if value == "" || err != nil {
			return
		}
		if p.URL = u; name == "url" {
			p.Known |= carried
		}
	case "author", "authors":
		value = strings.Join(list, ", ")
		line(millrace.FieldAuthor, &p.Author)
	case "published", "date", "published_at", "datepublished", "date_published":
		when(millrace.FieldPublished, &p.Published)
	case "modified", "updated", "updated_at", "last_updated", "lastupdated", "last_modified", "lastmod", "datemodified", "date_modified":
		when(millrace.FieldModified, &p.Modified)
	case "language", "lang":
		line(millrace.FieldLanguage, &p.Language)
	case "section":
		line(millrace.FieldSection, &p.Section)
	case "kind":
		if kind := millrace.PageKind(value); slices.Contains(pageKinds, kind) {
			p.Kind = kind
			p.Known |= millrace.FieldKind
		}
	case "tags", "keywords":
		p.Tags = nil
		for _, tag := range list {
			if tag = cleanLine(tag); tag != "" {
				p.Tags = append(p.Tags, tag)
			}
		}
		p.Known |= millrace.FieldTags
	}
}
