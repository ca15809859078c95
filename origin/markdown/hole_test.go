package markdown

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// If only the generator knows a value, the sentence with this value is omitted, and nothing else.
func TestHoles(t *testing.T) {
	t.Parallel()
	jekyll := map[string]string{"_config.yml": "title: T\nversion: 4.2\nmill: {name: Old Mill}\n"}
	hugo := map[string]string{"hugo.toml": "[params]\nversion = '4.2'\n"}
	macros := map[string]string{"mkdocs.yml": "site_name: T\nplugins: [search, macros: {}]\nextra: {version: '4.2'}\n"}
	for name, c := range map[string]struct {
		config         map[string]string
		file, in, want string
		lost           int
	}{
		"known":            {jekyll, "a.md", "You need {{ site.version }} of the {{ site.mill.name }}, {{page.Own}}.", "You need 4.2 of the Old Mill, of a page.", 0},
		"unknown":          {jekyll, "a.md", "One. You need version **{{ site.data.v }}** or higher. *Two.*", "One. *Two.*", 1},
		"a filter":         {jekyll, "a.md", "{{ site.version | plus: 1 }} is next. One.", "One.", 1},
		"an abbreviation":  {jekyll, "a.md", "One. A mill, e.g. {{ x }}, turns. Two.", "One. Two.", 1},
		"between":          {jekyll, "a.md", "One. {% include x.html %}Two. Three.", "One. Two. Three.", 1},
		"wrapped":          {jekyll, "a.md", "One. You need\n{{ x }}\nor higher. Two.", "One. Two.", 1},
		"alone":            {jekyll, "a.md", "One.\n\n{% include toc.html %}\n\nTwo.", "One.\n\nTwo.", 1},
		"a list":           {jekyll, "a.md", "- {{ x }}\n- one\n  - {{ y }}", "- one", 2},
		"a heading":        {jekyll, "a.md", "## For {{ x }}\n\nOne.", "One.", 1},
		"a table":          {jekyll, "a.md", "| A | B |\n|---|---|\n| {{ x }} | b |", "| A | B |\n| --- | --- |\n|  | b |", 1},
		"a link":           {jekyll, "a.md", "See [one]({{ x }}) <a href=\"{{ y }}\">two</a>.", "See one two.", 0},
		"an image":         {jekyll, "a.md", "One.\n\n<img src=\"{{ x }}/a.png\" alt=\"A\">", "One.", 1},
		"a loop":           {jekyll, "a.md", "One.\n\n{% for p in site.posts %}\n- {{ p.title }}\n{% endfor %}\n\nTwo.", "One.\n\nTwo.", 1},
		"a condition":      {jekyll, "a.md", "One is {% if x %}a{% else %}b{% endif %}. Two.\n\n{% if x %}\nThree.\n{% endif %}", "Two.\n\nThree.", 1},
		"code":             {jekyll, "a.md", "Write `{{ x }}`.", "Write `{{ x }}`.", 0},
		"Hugo's param":     {hugo, "content/a.md", "It is {{< param version >}}, {{% param \"own\" %}}. It is {{< param none >}}.", "It is 4.2, of a page.", 1},
		"a shortcode":      {hugo, "content/a.md", "You need version {{< latest-version >}} or higher. {{< b >}}One.{{< /b >}}", "One.", 1},
		"macros":           {macros, "docs/a.md", "It is {{ version }}. It is {{ config.x }}. {% raw %}{{ x }}{% endraw %}", "It is 4.2. {{ x }}", 1},
		"no macros":        {map[string]string{"mkdocs.yml": "site_name: T\n"}, "docs/a.md", "It is {{ version }}.", "It is {{ version }}.", 0},
		"an expression":    {nil, "a.mdx", "One. Version {VERSION} or higher. {/* no */}Two.", "One. Two.", 1},
		"a component":      {nil, "a.mdx", "One. It is <Version of=\"x\" />. Two.\n\n<Toc />", "One. Two.", 2},
		"ideographic stop": {jekyll, "a.md", "一。二{{ x }}三。四。", "一。四。", 1},
	} {
		files := map[string]string{c.file: "---\ntitle: T\nown: of a page\n---\n" + c.in}
		for k, v := range c.config {
			files[k] = v
		}
		f, _ := made(t, files)
		var log bytes.Buffer
		f.log = slog.New(slog.NewTextHandler(&log, nil))
		p := page(t, f, "/"+c.file)
		if got := strings.TrimSpace(millrace.Markdown(p.Blocks)); got != c.want || int(f.lost.Load()) != c.lost {
			t.Errorf("%s: %q, %d lost; want %q, %d", name, got, f.lost.Load(), c.want, c.lost)
		}
		for range f.Changes(t.Context(), "") {
		}
		if logged := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), fmt.Sprintf("count=%d\n", c.lost)); logged != (c.lost > 0) {
			t.Errorf("%s: log %q", name, log.String())
		}
	}
}
