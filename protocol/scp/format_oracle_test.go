package scp

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/canon"
)

// lineResult is the result of reading a line.
type lineResult int

const (
	taken lineResult = iota
	skipped
	fatalLine
	undecided // the oracle cannot decide
)

// oracle is a slow second implementation of the specification's text and schema. It reads a
// line with encoding/json.
type oracle struct {
	skip      bool
	undecided bool
}

var (
	languagePattern = regexp.MustCompile(`^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?(-[0-9A-Za-z]+)*$`)
	durationPattern = regexp.MustCompile(`^PT(\d+H)?(\d+M)?(\d+(\.\d+)?S)?$`)
	timePattern     = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$`)
)

func (r *oracle) read(line []byte) (lineResult, *page) {
	if !utf8.Valid(line) || !json.Valid(line) || depthOf(line) > maxDepth {
		return fatalLine, nil
	}
	var raw map[string]json.RawMessage
	if bytes.TrimLeft(line, " \t\r\n")[0] != '{' || json.Unmarshal(line, &raw) != nil {
		return fatalLine, nil
	}
	for _, m := range pageObject.members {
		if m.needs && raw[m.name] == nil {
			return fatalLine, nil
		}
	}
	var m map[string]any
	r.decode(line, &m)
	w := &page{
		URL: r.str(m["url"]), Title: r.str(m["title"]), Description: r.str(m["description"]), Language: r.str(m["language"]),
		Modified: r.time(m["modified"]),
	}
	if u, err := canon.URL(w.URL); err != nil || !regexp.MustCompile(`^https?://`).MatchString(w.URL) {
		r.skip = true
	} else {
		w.URL = u
	}
	r.skip = r.skip || !languagePattern.MatchString(w.Language)
	if v, ok := m["author"]; ok {
		w.Author = r.str(v)
	}
	if v, ok := m["published"]; ok {
		w.Published = r.time(v)
	}
	if v, ok := m["canonical"]; ok {
		w.Canonical = webURL(r.str(v))
	}
	if v, ok := m["schema"]; ok {
		if _, ok := v.(map[string]any); !ok {
			r.skip = true
		}
		var b bytes.Buffer
		if err := json.Compact(&b, raw["schema"]); err != nil {
			panic(err)
		}
		w.Schema = b.Bytes()
	}
	list := r.list(m["content"])
	r.skip = r.skip || len(list) == 0 || len(list) > maxBlocks
	for _, v := range list {
		if b, ok := r.block(v); ok {
			w.Content = append(w.Content, b)
		}
	}
	switch {
	case r.undecided:
		return undecided, nil
	case r.skip:
		return skipped, nil
	}
	return taken, w
}

func (r *oracle) decode(b []byte, v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		panic(err)
	}
}

func depthOf(line []byte) int {
	depth, most := 0, 0
	d := json.NewDecoder(bytes.NewReader(line))
	for {
		t, err := d.Token()
		if err != nil {
			return most
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
			most = max(most, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

func (r *oracle) str(v any) string {
	s, ok := v.(string)
	r.skip = r.skip || !ok
	return s
}

func (r *oracle) list(v any) []any {
	l, ok := v.([]any)
	r.skip = r.skip || !ok
	return l
}

func (r *oracle) strs(v any) []string {
	var out []string
	for _, e := range r.list(v) {
		out = append(out, r.str(e))
	}
	return out
}

func (r *oracle) time(v any) time.Time {
	s := strings.ToUpper(r.str(v))
	t, err := time.Parse(time.RFC3339, s)
	if err != nil && strings.Contains(s, ":60") {
		t, err = time.Parse(time.RFC3339, strings.Replace(s, ":60", ":59", 1))
		if u := t.UTC(); err == nil && (u.Hour() != 23 || u.Minute() != 59 || u.Second() != 59) {
			r.skip = true
		}
	}
	r.skip = r.skip || err != nil || !timePattern.MatchString(s)
	// The time package accepts offsets of 24 hours.
	r.undecided = r.undecided || strings.Contains(s, "+24:") || strings.Contains(s, "-24:")
	return t
}

func (r *oracle) number(v any) int {
	n, ok := v.(json.Number)
	if !ok {
		r.skip = true
		return 0
	}
	s := string(n)
	if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 || len(s) > 400 {
		r.undecided = true
		return 0
	}
	f, _ := new(big.Rat).SetString(s)
	if !f.IsInt() {
		r.skip = true
		return 0
	}
	if f.Num().Cmp(big.NewInt(maxInt)) > 0 {
		return maxInt
	}
	if f.Num().Cmp(big.NewInt(-maxInt)) < 0 {
		return -maxInt
	}
	return int(f.Num().Int64())
}

// has calls f with the named member, if the object has it.
func has(m map[string]any, name string, f func(any)) {
	if v, ok := m[name]; ok {
		f(v)
	}
}

// block reads a block, and reports whether the page keeps it.
func (r *oracle) block(v any) (b block, valid bool) {
	m, ok := v.(map[string]any)
	t, known := m["type"].(string)
	if !ok || !known {
		r.skip = true
		return b, false
	}
	b.Type, valid = blockType(t), true
	for _, name := range map[string][]string{
		"text": {"text"}, "heading": {"level", "text"}, "link": {"url", "text"}, "image": {"url", "alt"}, "list": {"ordered", "items"},
		"code": {"code"}, "table": {"rows"}, "quote": {"text"}, "video": {"name", "url"}, "audio": {"name", "url"},
	}[t] {
		if _, ok := m[name]; !ok {
			r.skip = true
			return b, false
		}
	}
	link := func(v any) string {
		s := r.str(v)
		u := webURL(s)
		valid = valid && (u != "" || r.skip)
		return u
	}
	switch b.Type {
	case textBlock:
		b.Text = r.str(m["text"])
	case headingBlock:
		b.Level, b.Text = min(max(r.number(m["level"]), 1), 6), r.str(m["text"])
	case linkBlock:
		b.URL, b.Text = link(m["url"]), r.str(m["text"])
		has(m, "rel", func(v any) { b.Rel = r.strs(v) })
	case imageBlock:
		b.URL, b.Text = link(m["url"]), r.str(m["alt"])
	case listBlock:
		b.Ordered, ok = m["ordered"].(bool)
		r.skip = r.skip || !ok
		b.Items = r.strs(m["items"])
	case codeBlock:
		b.Text = r.str(m["code"])
		has(m, "language", func(v any) { b.Language = r.str(v) })
	case tableBlock:
		for _, row := range r.list(m["rows"]) {
			b.Rows = append(b.Rows, r.strs(row))
		}
	case quoteBlock:
		b.Text = r.str(m["text"])
		has(m, "citation", func(v any) { b.Citation = r.str(v) })
	case videoBlock, audioBlock:
		b.Media, ok = r.media(m, b.Type == videoBlock)
		return b, ok
	default:
		return b, false
	}
	return b, valid
}

func (r *oracle) media(m map[string]any, video bool) (out *media, valid bool) {
	out = &media{Name: r.str(m["name"])}
	if s, ok := m["url"].(string); ok {
		out.URL = webURL(s)
	} else {
		list := r.list(m["url"])
		r.skip = r.skip || len(list) == 0
		for _, e := range list {
			o := r.object(e, "href", "mediaType")
			s := source{webURL(r.str(o["href"])), r.str(o["mediaType"])}
			if video {
				has(o, "rel", func(v any) { r.str(v) })
			}
			if s.Href != "" {
				out.Sources = append(out.Sources, s)
			}
		}
	}
	has(m, "duration", func(v any) {
		out.Duration = r.str(v)
		r.skip = r.skip || out.Duration == "PT" || !durationPattern.MatchString(out.Duration)
	})
	has(m, "summary", func(v any) { out.Summary = r.str(v) })
	has(m, "transcript", func(v any) { out.Transcript = r.str(v) })
	has(m, "icon", func(v any) {
		o := r.object(v)
		has(o, "type", func(v any) { r.skip = r.skip || v != "Image" })
		has(o, "url", func(v any) { out.Icon = webURL(r.str(v)) })
	})
	natural := func(v any) int {
		n := r.number(v)
		r.skip = r.skip || n < 0
		return max(n, 0)
	}
	has(m, "chapters", func(v any) {
		for _, e := range r.list(v) {
			o := r.object(e, "time", "title")
			out.Chapters = append(out.Chapters, chapter{natural(o["time"]), r.str(o["title"])})
		}
	})
	if video {
		has(m, "width", func(v any) { out.Width = natural(v) })
		has(m, "height", func(v any) { out.Height = natural(v) })
		has(m, "captions", func(v any) {
			for _, e := range r.list(v) {
				o := r.object(e, "language", "url", "label")
				if u := webURL(r.str(o["url"])); u != "" {
					out.Captions = append(out.Captions, caption{r.str(o["language"]), u, r.str(o["label"])})
				} else {
					r.strs([]any{o["language"], o["label"]})
				}
			}
		})
	} else {
		name := func(v any) string {
			if o, ok := v.(map[string]any); ok {
				return r.str(o["name"])
			}
			return r.str(v)
		}
		has(m, "attributedTo", func(v any) { out.AttributedTo = name(v) })
		has(m, "partOf", func(v any) { out.PartOf = name(v) })
	}
	return out, out.URL != "" || len(out.Sources) > 0
}

func (r *oracle) object(v any, needs ...string) map[string]any {
	m, ok := v.(map[string]any)
	r.skip = r.skip || !ok
	for _, name := range needs {
		_, ok := m[name]
		r.skip = r.skip || !ok
	}
	return m
}
