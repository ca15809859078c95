package extract

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

var (
	goldFence   = regexp.MustCompile("(?ms)^(```+)([^`\n]*)\n(.*?)\n?^```+[ \t]*$")
	goldHeading = regexp.MustCompile(`(?m)^(#{1,6}) +(.*?)\s*$`)
	goldImage   = regexp.MustCompile(`!\[[^\]]*\]\(<?([^) >]+)`)
	goldTable   = regexp.MustCompile(`(?m)(^\|.*\n)+`)
	goldLink    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// flattenBlocks returns all blocks, each one before the blocks inside it.
func flattenBlocks(blocks []millrace.Block) []millrace.Block {
	var out []millrace.Block
	for _, b := range blocks {
		out = append(out, b)
		for _, it := range b.Items {
			out = append(out, flattenBlocks(it.Blocks)...)
		}
		out = append(out, flattenBlocks(b.Blocks)...)
	}
	return out
}

// TestBlocks prints how much of the structure of the gold pages the extractor keeps.
func TestBlocks(t *testing.T) {
	dir := filepath.Join(testkit.Data(t, "MILLRACE_TEST_DATA"), "blocks")
	names, _ := filepath.Glob(filepath.Join(dir, "html", "*.html"))
	if len(names) == 0 {
		t.Fatal("no gold pages in ", dir)
	}
	var code, codeN, lang, langN, heads, headsN, images, imagesN, tables, tablesN, titles, titlesN int
	mean := 0.0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(name), ".html")
		gold, err := os.ReadFile(filepath.Join(dir, "markdown", base+".md"))
		if err != nil {
			t.Fatal(err)
		}
		_, head, _ := strings.Cut(string(gold), "```json\n")
		head, text, _ := strings.Cut(head, "\n```\n")
		var declared struct{ Title, Author, Published string }
		if err := json.Unmarshal([]byte(head), &declared); err != nil {
			t.Fatal(base, err)
		}
		url := "https://example.com/" + base
		if _, rest, ok := strings.Cut(string(data), `<!-- {"url":"`); ok {
			url, _, _ = strings.Cut(rest, `"`)
		}
		res, err := HTML(t.Context(), data, url, nil)
		if err != nil {
			t.Errorf("%s: %v", base, err)
			continue
		}
		blocks := flattenBlocks(res.Page.Blocks)
		var missed []string
		mean += f1(plainMarkdown(text), res.Page.Text())
		if declared.Title != "" {
			if titlesN++; letters(declared.Title) == letters(res.Page.Title) {
				titles++
			} else {
				missed = append(missed, "title "+declared.Title+" got "+res.Page.Title)
			}
		}
		for _, m := range goldFence.FindAllStringSubmatch(text, -1) {
			codeN++
			found := false
			for _, b := range blocks {
				if b.Type == millrace.CodeBlock && strings.TrimSuffix(b.Text, "\n") == strings.TrimSuffix(m[3], "\n") {
					if !found {
						code++
						if m[2] != "" && b.Language == m[2] {
							lang++
						}
					}
					found = true
				}
			}
			if m[2] != "" {
				langN++
			}
			if !found {
				missed = append(missed, "code "+m[3][:min(len(m[3]), 60)])
			}
		}
		text = goldFence.ReplaceAllString(text, "")
		for _, m := range goldHeading.FindAllStringSubmatch(text, -1) {
			headsN++
			found := letters(goldLink.ReplaceAllString(m[2], "$1")) == letters(res.Page.Title) // the title is a field, not a block
			for _, b := range blocks {
				found = found || b.Type == millrace.HeadingBlock && b.Level == len(m[1]) && letters(b.Text) == letters(goldLink.ReplaceAllString(m[2], "$1"))
			}
			if found {
				heads++
			} else {
				missed = append(missed, "heading "+m[0])
			}
		}
		for _, m := range goldImage.FindAllStringSubmatch(text, -1) {
			imagesN++
			found := false
			for _, b := range blocks {
				found = found || b.URL == m[1] || strings.HasSuffix(b.URL, m[1])
			}
			if found {
				images++
			} else {
				missed = append(missed, "image "+m[1])
			}
		}
		for _, m := range goldTable.FindAllString(text, -1) {
			tablesN++
			found := false
			for _, b := range blocks {
				if b.Type == millrace.TableBlock {
					found = found || letters(plainMarkdown(strings.ReplaceAll(m, "---", ""))) == letters(millrace.Text([]millrace.Block{{Type: b.Type, Rows: b.Rows}}))
				}
			}
			if found {
				tables++
			} else {
				missed = append(missed, "table "+m[:min(len(m), 80)])
			}
		}
		if len(missed) > 0 && testing.Verbose() {
			t.Logf("%s (root %s): %q", base, res.Root, missed)
		}
	}
	t.Logf("%d pages: F1 %.3f, code %d/%d, language %d/%d, tables %d/%d, headings %d/%d, images %d/%d, titles %d/%d", len(names), mean/float64(len(names)),
		code, codeN, lang, langN, tables, tablesN, heads, headsN, images, imagesN, titles, titlesN)
	for name, c := range map[string]struct{ got, floor int }{
		"code": {code, 44}, "language": {lang, 16}, "tables": {tables, 15}, "headings": {heads, 160}, "images": {images, 22}, "titles": {titles, 88},
	} {
		if c.got < c.floor {
			t.Errorf("%s: %d, the floor is %d", name, c.got, c.floor)
		}
	}
}

func plainMarkdown(s string) string {
	return strings.NewReplacer("**", "", "`", "", `\`, "", "[^", "[").Replace(goldLink.ReplaceAllString(s, "$1"))
}
