package arc

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// document returns the document that a publisher writes at a path.
func document(t testing.TB, o *protocol.PublisherOptions, v millrace.View, path string) []byte {
	t.Helper()
	for d, err := range NewPublisher(o).All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Path == path {
			var b bytes.Buffer
			if err := d.Write(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
	}
	t.Fatalf("no document at %s", path)
	return nil
}

func everything() *protocol.PublisherOptions {
	return &protocol.PublisherOptions{
		Contact: "crawl@example.com: \"#1\" \u0085", Policy: &millrace.Policy{Rate: millrace.RateHints{PerSecond: 0.5}},
		Own: []any{&PublisherOptions{
			Priorities: map[string]float64{"/": 0.25, "/blog": 1, "/docs/": 1e-7}, Listed: []string{"/members/", "/members/", "/post"},
		}},
	}
}

// The YAML form has the same content as the list, as parsed by another YAML parser.
func TestYAMLTwin(t *testing.T) {
	for seed := range uint64(8) {
		for _, o := range []*protocol.PublisherOptions{nil, everything()} {
			pages := protocoltest.Pages(seed)
			pages[0].Extra = map[string]json.RawMessage{Name: json.RawMessage(`{"page":"x","yes":"no","n":[1e21,-0.5,1e-7,0,true,null,"null","~","1","- a",": b","#"," "],"{\"":{},"[]":[]}`)}
			v := protocoltest.NewView(site, pages, Protocol().Tagger)
			var want, got any
			if err := json.Unmarshal(document(t, o, v, pathList), &want); err != nil {
				t.Fatal(err)
			}
			twin := document(t, o, v, pathYAML)
			if err := yaml.Unmarshal(twin, &got); err != nil {
				t.Fatalf("%v in:\n%s", err, twin)
			}
			// Compare both as JSON, since YAML has integers.
			b, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			w, _ := json.Marshal(want)
			if g, _ := json.Marshal(got); !bytes.Equal(w, g) {
				t.Errorf("site %d (-JSON +YAML):\n%s", seed, cmp.Diff(want, got))
			}
		}
	}
	empty := document(t, nil, protocoltest.NewView(site, nil, Protocol().Tagger), pathYAML)
	const want = "arc_sitemap_version: \"2.1\"\nsite: \"https://example.com\"\ngenerated_at: \"1970-01-01T00:00:00Z\"\npages: []\n"
	if string(empty) != want {
		t.Errorf("the YAML form of an empty list is %q", empty)
	}
}

func TestYAMLEntry(t *testing.T) {
	e := entryOf(guide())
	e.Checksum = checksumPrefix + "00"
	e.Summary = "a \"b\"\\\u2028\u0085é\t"
	const want = `  - url: "https://example.com/guide/"
    lastmod: "2026-03-04T05:06:07Z"
    ai_indexable: true
    ai_summary: "a \"b\"\\\u2028\u0085é\t"
    ai_tags: ["water", "plants", "HowTo"]
    ai_checksum: "sha256:00"
    ai_snapshot: {"page": "x", "sections": [{}, []]}
    auth_required: false
    robots_directive: "index"
`
	e.Snapshot = json.RawMessage(`{"page":"x","sections":[{},[]]}`)
	if diff := cmp.Diff(want, string(appendYAMLEntry(nil, e.append(nil)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzYAMLString(f *testing.F) {
	for _, s := range []string{"", "a: b", "\x00\x7f\u0080\u00a0\u2028\ufeff\ufffe\U0010ffff", "\xff", "---\n...", "!!int 1", "&a *a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in := []string{s, canon.ValidUTF8(s)}
		flow := appendFlow(nil, appendStrings(nil, in))
		var got []string
		if err := yaml.Unmarshal(flow, &got); err != nil {
			t.Fatalf("%q: %v", flow, err)
		}
		if len(got) != 2 || got[0] != in[1] || got[1] != in[1] {
			t.Errorf("%q is %q", flow, got)
		}
	})
}

// Published lists are valid against the schema of the specification (E.9), with formats
// asserted. Its own example violates the schema only by null values and lists.
func TestSchema(t *testing.T) {
	dir := testkit.Data(t, "MILLRACE_TEST_SPECS")
	spec, err := os.ReadFile(filepath.Join(dir, "arc-appendix-e.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(spec), "\n## E.9 ")
	_, text, _ = strings.Cut(text, "```json\n")
	text, _, _ = strings.Cut(text, "```")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://example.com/schema", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("https://example.com/schema")
	if err != nil {
		t.Fatal(err)
	}
	holds := func(list []byte) error {
		in, err := jsonschema.UnmarshalJSON(bytes.NewReader(list))
		if err != nil {
			return err
		}
		return schema.Validate(in)
	}
	for seed := range uint64(8) {
		v := protocoltest.NewView(site, protocoltest.Pages(seed), Protocol().Tagger)
		if err := holds(document(t, everything(), v, pathList)); err != nil {
			t.Errorf("site %d: %v", seed, err)
		}
	}
	// The reader and the schema refuse the same pages.
	for _, page := range []string{
		`{"url":"https://x.test/","ai_indexable":true}`, `{"url":"x","ai_indexable":true}`, `{"url":"https://x.test/"}`,
		`{"url":"https://x.test/","ai_indexable":1}`, `{"url":"https://x.test/","ai_indexable":true,"lastmod":"2025-11-09T08:00:00Z"}`,
		`{"url":"https://x.test/","ai_indexable":true,"lastmod":"2025-11-09 08:00:00Z"}`,
		`{"url":"https://x.test/","ai_indexable":true,"lastmod":"2025-11-09T08:00:00"}`,
		`{"url":"https://x.test/","ai_indexable":true,"lastmod":"2025-13-09T08:00:00Z"}`,
		`{"url":"https://x.test/","ai_indexable":true,"ai_tags":[1]}`, `{"url":"https://x.test/","ai_indexable":true,"ai_snapshot":"s"}`,
		`{"url":"https://x.test/","ai_indexable":true,"crawl_priority":1}`, `{"url":"https://x.test/","ai_indexable":true,"crawl_priority":1.1}`,
		`{"url":"urn:a:b","ai_indexable":true}`, `{"url":"https://x.test/\u00e9","ai_indexable":true}`, `{"url":"https://[x/","ai_indexable":true}`,
		`{"url":"https://x.test/","ai_indexable":true,"auth_required":"no"}`, `7`,
	} {
		_, _, ours := decodeEntry([]byte(page))
		theirs := holds([]byte(`{"arc_sitemap_version":"2.1","site":"https://x.test","generated_at":"2025-11-09T08:00:00Z","pages":[` + page + `]}`))
		if (ours == nil) != (theirs == nil) {
			t.Errorf("%s: the reader returns %v, the schema %v", page, ours, theirs)
		}
	}
	for _, list := range []string{
		`{"arc_sitemap_version":"2.1","site":"https://x.test","generated_at":"2025-11-09T08:00:00Z","pages":[]}`,
		`{"arc_sitemap_version":"2.1","site":"x.test","generated_at":"2025-11-09T08:00:00Z","pages":[]}`,
		`{"arc_sitemap_version":"2.1","site":"https://x.test","generated_at":"now","pages":[]}`,
		`{"arc_sitemap_version":2.1,"site":"https://x.test","generated_at":"2025-11-09T08:00:00Z","pages":[]}`,
		`{"arc_sitemap_version":"2.1","site":"https://x.test","generated_at":"2025-11-09T08:00:00Z"}`,
		`{"arc_sitemap_version":"2.1","site":"https://x.test","pages":[]}`, `{"pages":[]}`, `[]`,
		`{"arc_sitemap_version":"2.1","site":"https://x.test","generated_at":"2025-11-09T08:00:00Z","pages":{}}`,
	} {
		_, ours := scanList(strings.NewReader(list), 1<<20, func(int, *entry, []string, error) bool { return true })
		if theirs := holds([]byte(list)); (ours == nil) != (theirs == nil) {
			t.Errorf("%s: the reader returns %v, the schema %v", list, ours, theirs)
		}
	}
}

func TestScanList(t *testing.T) {
	list := func(version, more string) string {
		return `{"pages":[{"url":"https://x.test/a","ai_indexable":true},7,{"url":null}],"site":"https://x.test/","generated_at":"2025-11-09T08:00:00Z",` +
			`"arc_sitemap_version":` + version + more + `}`
	}
	for in, want := range map[string]error{
		list(`"2.1"`, ""): nil, list(`"2.9"`, `,"crawl_rate":null,"ai-crawl-contact":7`): nil, list(`"2"`, ""): nil,
		list(`"3.0"`, ""): errVersion, list(`"21"`, ""): errVersion, list(`""`, ""): errVersion, list(`"2.1"`, `,"x`): millrace.ErrInvalid,
		`<!DOCTYPE html>`: errNoList, `{"items":[]}`: errNoList, `[]`: errNoList, ``: errNoList, list(`2`, ""): millrace.ErrInvalid,
	} {
		seen, bad := 0, 0
		h, err := scanList(strings.NewReader(in), 1<<20, func(_ int, _ *entry, _ []string, err error) bool {
			if seen++; err != nil {
				bad++
			}
			return true
		})
		switch {
		case want != nil && !errors.Is(err, want):
			t.Errorf("%s: %v, want %v", in, err, want)
		case want == nil && (err != nil || h.Site != "https://x.test/" || !parseTime(h.Generated).Equal(time.Date(2025, 11, 9, 8, 0, 0, 0, time.UTC)) || seen != 3 || bad != 2):
			t.Errorf("%s: %+v, %v, %d pages, %d bad", in, h, err, seen, bad)
		}
	}
	if _, err := scanList(strings.NewReader(list(`"2.1"`, "")), 50, func(int, *entry, []string, error) bool { return true }); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("a document over the size limit: %v", err)
	}
	huge := `{"arc_sitemap_version":"2.1","pages":[{"url":"` + strings.Repeat("x", maxEntry+1<<20) + `"}]}`
	if _, err := scanList(strings.NewReader(huge), 1<<30, func(int, *entry, []string, error) bool { return true }); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("a huge page: %v", err)
	}
}
