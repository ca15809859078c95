package export

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/policy"
)

// For any URL, the name of the file is safe and below the site's folder.
func FuzzFileName(f *testing.F) {
	for _, u := range hostile {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) {
		const base = "https://mill.example/"
		abs, err := canon.URL(canon.Absolute(base, "/"+u))
		if err != nil {
			return
		}
		name := fileName(base, abs)
		if path.Clean(name) != name || path.IsAbs(name) || !strings.HasSuffix(name, ".md") || !utf8.ValidString(name) || len(name) > maxPath {
			t.Fatalf("%q: %q", abs, name)
		}
		parts := strings.Split(name, "/")
		for i, p := range parts {
			if p == "" || len(p) > 255 || strings.ContainsAny(p, "\\:*?\"<>|\x00\n") || strings.HasPrefix(p, ".") || strings.HasPrefix(p, "-") ||
				strings.HasSuffix(p, ".") || strings.HasSuffix(p, " ") || device(p) || i < len(parts)-1 && strings.HasSuffix(strings.ToLower(p), ".md") {
				t.Fatalf("%q: %q has the part %q", abs, name, p)
			}
		}
	})
}

// For any page, the front matter is valid YAML with the same values, and ends at the right place.
func FuzzFrontMatter(f *testing.F) {
	f.Add("plain", "tag")
	f.Add("---\n\"\\\x00\u0085\u2028\ufeff\U000e0001\xff", "]: #")
	f.Add("\t'%@`!&*|>", "\r\n---\r\n")
	f.Fuzz(func(t *testing.T, title, tag string) {
		b := appendMarkdown(nil, "https://mill.example/", &millrace.Page{URL: "https://mill.example/", Title: title, Tags: []string{tag}}, policy.Merge(nil))
		head, rest, ok := strings.Cut(strings.TrimPrefix(string(b), "---\n"), "\n---\n")
		if !ok || rest != "" || !utf8.Valid(b) {
			t.Fatalf("%q", b)
		}
		var front struct {
			Title string
			URL   string
			Site  string
			Tags  []string
		}
		if err := yaml.UnmarshalWithOptions([]byte(head), &front, yaml.Strict()); err != nil {
			t.Fatalf("%v\n%q", err, head)
		}
		if front.Title != valid(title) || len(front.Tags) != 1 || front.Tags[0] != valid(tag) {
			t.Fatalf("%q %q is %q %q:\n%s", title, tag, front.Title, front.Tags, head)
		}
	})
}

// A manifest may have any content; none causes a panic.
func FuzzRecords(f *testing.F) {
	f.Add("{\"format\":1}\n{\"file\":\"a.md\",\"sum\":\"00\"}\n{\"fil")
	f.Add("{\"format\":2}\n")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		complete, err := records(strings.NewReader(text), func(record) error { n++; return nil })
		if complete > int64(len(text)) || n > strings.Count(text, "\n") || err == nil && complete > 0 && text[complete-1] != '\n' {
			t.Fatalf("%d of %d bytes, %d files: %v", complete, len(text), n, err)
		}
	})
}
