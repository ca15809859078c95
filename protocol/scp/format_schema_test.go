package scp

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// specification returns the text of the specification.
func specification(t *testing.T) string {
	t.Helper()
	dir := testkit.Data(t, "MILLRACE_TEST_SPECS")
	b, err := os.ReadFile(filepath.Join(dir, "scp-0.1.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// schemaUnder returns the compiled JSON Schema below a heading of the specification.
func schemaUnder(t *testing.T, spec, heading string) *jsonschema.Schema {
	t.Helper()
	_, text, _ := strings.Cut(spec, "\n### "+heading+"\n")
	_, text, _ = strings.Cut(text, "```json\n")
	text, _, _ = strings.Cut(text, "```")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		// RE2 has no look-ahead. The one for durations requires one of the letters.
		re, err := regexp.Compile(strings.Replace(s, "(?=.*[HMS])", "", 1))
		if err != nil {
			return nil, err
		}
		return pattern{re, strings.Contains(s, "(?=.*[HMS])")}, nil
	})
	if err := c.AddResource("https://example.com/schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://example.com/schema")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type pattern struct {
	*regexp.Regexp
	letter bool
}

func (p pattern) MatchString(s string) bool {
	return p.Regexp.MatchString(s) && (!p.letter || strings.ContainsAny(s[2:], "HMS"))
}

func validates(t *testing.T, s *jsonschema.Schema, line []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// The lines that the publisher writes are valid against the schema of the specification.
func TestSchemaOfPages(t *testing.T) {
	s := schemaUnder(t, specification(t), "Page Object Schema")
	for seed := range uint64(10) {
		for _, p := range protocoltest.Pages(seed) {
			if w := pageOf(testSite, p); w != nil {
				line := appendPage(nil, w)
				if err := validates(t, s, line); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
		}
	}
}

// apart lists the cases in which the schema and the reader differ, with the reason.
var apart = map[string]string{
	"twice":                "JSON leaves open which of two counts",
	"type twice":           "JSON leaves open which of two counts",
	"type twice, late":     "JSON leaves open which of two counts",
	"text twice":           "JSON leaves open which of two counts",
	"no host":              "Validation wants valid URLs of HTTP",
	"credentials":          "Validation wants valid URLs of HTTP",
	"1001 blocks":          "a limit of Resource Exhaustion Attacks",
	"too deep":             "a limit of Resource Exhaustion Attacks",
	"unknown type":         "Error Handling goes on after it",
	"level":                "Error Handling clamps it",
	"level below":          "Error Handling clamps it",
	"canonical":            "a bad URL drops the member, the page stands",
	"link to itself":       "a bad URL drops the block, the page stands",
	"video with a bad URL": "a bad URL drops the block, the page stands",
	"audio":                "the text allows a Person",
	"not UTF-8":            "the library does not look",
	"surrogate in UTF-8":   "the library does not look",
}

// The reader and the schema accept the same pages.
func TestSchemaAgrees(t *testing.T) {
	s := schemaUnder(t, specification(t), "Page Object Schema")
	for _, c := range lineCases {
		err := validates(t, s, []byte(c.line()))
		if differ := (err == nil) != (c.want == taken); differ != (apart[c.name] != "") {
			t.Errorf("%s: %d, but %v", c.name, c.want, err)
		}
	}
	// Remove members, or change their types.
	for _, c := range lineCases {
		if c.want != taken || apart[c.name] != "" {
			continue
		}
		var page map[string]any
		if json.Unmarshal([]byte(c.line()), &page) != nil || c.old != "" && c.old != oneBlock {
			continue
		}
		part := any(page)
		if c.old == oneBlock {
			part = page["content"].([]any)[1]
		}
		each(part, func() {
			line, err := json.Marshal(page)
			if err != nil {
				t.Fatal(err)
			}
			got, _, why := ours(t, line)
			p := &parser{limits: new(OpenOptions).resolve()}
			p.parsePage(line)
			if p.counts != (counts{}) {
				return // covered by the cases above
			}
			if err := validates(t, s, line); (err == nil) != (got == taken) {
				t.Errorf("%s: %d %v, but %v", line, got, why, err)
			}
		})
	}
}

// each calls f for every change of one value inside v.
func each(v any, f func()) {
	change := func(old any, set func(any), del func()) {
		for _, other := range []any{nil, true, 1, -1, 1.5, "", "a", "https://example.com/", []any{}, []any{"a"}, map[string]any{}} {
			set(other)
			f()
		}
		if del != nil {
			del()
			f()
		}
		set(old)
		each(old, f)
	}
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		for _, name := range names {
			change(v[name], func(x any) { v[name] = x }, func() { delete(v, name) })
		}
	case []any:
		for i := range v {
			change(v[i], func(x any) { v[i] = x }, nil)
		}
	}
}

// The reader and the schema accept the same metadata.
func TestSchemaOfMetadata(t *testing.T) {
	s := schemaUnder(t, specification(t), "Collection Metadata Schema")
	for _, c := range metadataCases {
		line := []byte(c.line())
		p := &parser{limits: new(OpenOptions).resolve()}
		_, _, ok := p.parseMetadata(line)
		if ok != (c.code == "") {
			t.Errorf("%s: %v", line, p.fatal)
		}
		if err := validates(t, s, line); (err == nil) != ok && !c.apart {
			t.Errorf("%s: %v, but %v", line, p.fatal, err)
		}
	}
	m := Metadata{ID: "a_B-1", Section: "s", Type: "delta", Generated: aTime, Since: aTime, Version: version}
	line, _ := m.line(false)
	if err := validates(t, s, line); err != nil {
		t.Error(err)
	}
}

// All examples of the specification that are not abridged are readable. None of their
// checksums matches.
func TestExamples(t *testing.T) {
	spec := specification(t)
	files := 0
	for _, text := range strings.Split(spec, "```jsonl\n")[1:] {
		text, _, _ = strings.Cut(text, "```")
		if strings.Contains(text, "...") {
			continue
		}
		c, err := Open(strings.NewReader(text), int64(len(text)), nil)
		if err != nil {
			t.Fatal(err)
		}
		pages := 0
		for _, err := range c.Pages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			pages++
		}
		v, err := c.Verify(t.Context())
		if pages != 2 || v.Pages != 2 || (err != nil) != (c.Metadata().Checksum != "") || err != nil && v.Checksum != "bad" {
			t.Errorf("%d pages, %+v, %v", pages, v, err)
		}
		files++
	}
	blocks := 0
	for _, text := range strings.Split(spec, "```json\n")[1:] {
		text, _, _ = strings.Cut(text, "```")
		var b bytes.Buffer
		if json.Compact(&b, []byte(text)) != nil || strings.Contains(text, `"$schema"`) {
			continue
		}
		line := b.String()
		switch {
		case strings.HasPrefix(line, `{"collection"`):
			p := &parser{limits: new(OpenOptions).resolve()}
			if _, _, ok := p.parseMetadata([]byte(line)); !ok {
				t.Errorf("%s: %v", line, p.fatal)
			}
			continue
		case strings.HasPrefix(line, `{"type"`):
			line = strings.Replace(plainLine, oneBlock, line, 1)
			blocks++
		}
		p := &parser{limits: new(OpenOptions).resolve(), keep: true}
		if !p.parsePage([]byte(line)) || p.skip.reason != "" || p.counts != (counts{}) {
			t.Errorf("%s: %v %v %v", line, p.fatal, p.skip, p.counts)
		}
	}
	if files != 3 || blocks != 10 {
		t.Errorf("%d files, %d blocks", files, blocks)
	}
}

// Every section named by an error is a heading of the specification.
func TestSections(t *testing.T) {
	spec := specification(t)
	var named []string
	for _, c := range lineCases {
		if _, _, why := ours(t, []byte(c.line())); why.section != "" {
			named = append(named, why.section)
		}
	}
	for _, c := range metadataCases {
		p := &parser{limits: new(OpenOptions).resolve()}
		if _, _, ok := p.parseMetadata([]byte(c.line())); !ok {
			named = append(named, p.fatal.section)
		}
	}
	for _, s := range append(named, "Structure", "Checksum Verification") {
		if !strings.Contains(spec, "# "+s+"\n") && !strings.Contains(spec, "**"+s+":**") {
			t.Errorf("the specification has no section %q", s)
		}
	}
}
