package openfeeder

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/check"
)

// Markup in a page's text is not a fault if the page displays it, as a page about HTML does. A
// script left in the text is a fault.
func TestCheckScripts(t *testing.T) {
	const loads, tracks = `Write <script src="https://a.example/x.js" async></script> there.`, "<script>track('page')</script>"
	for _, tt := range []struct {
		name, kind, text, page string
		want                   bool // whether there is a finding
	}{
		{"a name", "paragraph", "The <script> element (see below) runs, and </script> ends it; an <iframe > is a page, an <img > a picture.", "404 x", false},
		{"an end", "paragraph", "It begins with <script> and ends with </script>, or <script type=module>.", "404 x", false},
		{"escaped", "paragraph", `&lt;script src=x.js&gt;&lt;/script&gt;`, "404 x", false},
		{"code", "code", loads, "404 x", false},
		{"a span of Markdown", "paragraph", "Write `<script src=x.js></script>` there.", "404 x", false},
		{"a block of Markdown", "paragraph", "Write\n\n```html\n<script>track('page')</script>\n```\n\nthere.", "404 x", false},
		{"after a span of Markdown", "paragraph", "Write `this`: " + tracks + " `there`.", "404 x", true},
		{"it is shown", "paragraph", loads, `<p>Write <code>&lt;script src="https://a.example/x.js"
			async&gt;&lt;/script&gt;</code> there.`, false},
		{"it is shown in colors", "paragraph", loads, `Write <b>&lt;</b><i>script</i> <u>src</u>=&#34;https://a.example/x.js&#34; async&gt;`, false},
		{"another one is shown", "paragraph", loads, `<p>Write <code>&lt;script src="y.js"&gt;&lt;/script&gt;</code> there.`, true},
		{"it runs", "paragraph", "Text. " + tracks, "<p>Text. " + tracks, true},
		{"it runs late", "paragraph", "Text. " + tracks, "<!-- " + tracks + " --><p>Text. <SCRIPT>\n" + tracks, true},
		{"it loads", "list", loads, "<p>" + loads, true},
		{"no page", "paragraph", loads, "404 x", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chunks, err := json.Marshal([]map[string]any{{"id": "c1", "text": tt.text, "type": tt.kind, "relevance": nil}})
			if err != nil {
				t.Fatal(err)
			}
			r := examined(t, &stranger{answers: map[string]string{
				"/": "<p>", discovery: discoveryOf(usual), "/openfeeder": list(1, 1, "/a"), "/a": tt.page,
				"/openfeeder?url=%2Fa": `{"schema":"openfeeder/1.0","url":"` + strange + `/a","title":"T","chunks":` + string(chunks) + `}`,
			}})
			found, ran := false, false
			for _, f := range r.Findings {
				found = found || f.Rule == Name+"/4/no-scripts"
			}
			for _, o := range r.Outcomes {
				ran = ran || strings.HasSuffix(o.Rule.ID, "/no-scripts") && (o.State == check.Passed || o.State == check.Failed)
			}
			if found != tt.want || !ran {
				t.Errorf("found: %t, looked: %t, %+v", found, ran, r.Findings)
			}
		})
	}
}
