package extract

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func fragmentOf(t *testing.T, doc string) []block {
	t.Helper()
	blocks, err := Fragment(t.Context(), []byte(doc), "https://example.com/2024/05/a/", nil)
	if err != nil {
		t.Fatal(err)
	}
	checkBlocks(t, blocks)
	return blocks
}

func TestFragment(t *testing.T) {
	for _, c := range []struct {
		name, html string
		want       []block
	}{
		{"a post", `
<h1 class="wp-block-heading">Part</h1>
<p>Some <strong>words</strong>, <a href="../b/#c">a link</a> and <code>x</code>.</p>
<figure class="wp-block-image"><img src="/i.png" alt="A mill"/><figcaption>Caption</figcaption></figure>
<pre class="wp-block-code"><code class="language-go">func main() {}
</code></pre>
<figure class="wp-block-table"><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table></figure>
<ul><li>one<ul><li>two</li></ul></li></ul>`, []block{
			{Type: "heading", Level: 1, Text: "Part"},
			{Type: "text", Text: "Some words, a link and x.", Spans: []span{
				{Type: "strong", Start: 5, End: 10}, {Type: "link", Start: 12, End: 18, URL: "https://example.com/2024/05/b/#c"}, {Type: "code", Start: 23, End: 24},
			}},
			{Type: "image", URL: "https://example.com/i.png", Alt: "A mill", Caption: "Caption"},
			{Type: "code", Text: "func main() {}\n", Language: "go"},
			{Type: "table", Rows: [][]cell{{{Text: "a", Header: true}}, {{Text: "1"}}}},
			{Type: "list", Items: []item{{Text: "one", Blocks: []block{{Type: "list", Items: []item{{Text: "two"}}}}}}},
		}},
		{"what a page would lose", `<header><p>Header</p></header><nav><a href=/a>A</a> <a href=/b>B</a> <a href=/c>C</a></nav><aside>Aside</aside>
<div class="author meta"><p>Meta</p></div><section class=comments><p>Comments</p></section><footer>Footer</footer>`, []block{
			{Type: "text", Text: "Header"},
			{Type: "text", Text: "A B C", Spans: []span{
				{Type: "link", Start: 0, End: 1, URL: "https://example.com/a"}, {Type: "link", Start: 2, End: 3, URL: "https://example.com/b"}, {Type: "link", Start: 4, End: 5, URL: "https://example.com/c"},
			}},
			{Type: "text", Text: "Aside"},
			{Type: "text", Text: "Meta"},
			{Type: "text", Text: "Comments"},
			{Type: "text", Text: "Footer"},
		}},
		{"what is never content", `<style>LEAK</style><script>LEAK</script><title>LEAK</title><p>Text<span hidden>LEAK</span></p><div style="display:none"><p>LEAK</p></div><template><p>LEAK</p></template>
<div class="sharedaddy sd-sharing-enabled"><h3>LEAK</h3><ul><li><a href=/share>LEAK</a></li></ul></div><div id=jp-relatedposts class=jp-relatedposts><h3>LEAK</h3></div>
<form role=search class=wp-block-search><p>LEAK</p></form><form><p>LEAK <input></p><select><option>LEAK</select></form><div role=dialog>LEAK</div>`, []block{{Type: "text", Text: "Text"}}},
		{"notes", `<p>Text<sup><a id=r1 href="#n1">1</a></sup></p><ol class="wp-block-footnotes"><li id=n1>A note <a href="#r1">↩</a></li></ol>`, []block{
			{Type: "text", Text: "Text[1]", Spans: []span{{Type: "footnote", Start: 4, End: 7, URL: "n1"}}},
			{Type: "footnote", Anchor: "n1", Text: "1", Blocks: []block{{Type: "text", Text: "A note"}}},
		}},
		{"plain text", "Fish &amp; chips", []block{{Type: "text", Text: "Fish & chips"}}},
		{"a whole document", `<!DOCTYPE html><html><head><title>LEAK</title></head><body class=x><p>Text</p></body></html>`, []block{{Type: "text", Text: "Text"}}},
		{"what belongs in a head", `<link rel=stylesheet href=x><meta name=x content=y><noscript><img src=/i.png></noscript><p>Text`, []block{
			{Type: "image", URL: "https://example.com/i.png"}, {Type: "text", Text: "Text"},
		}},
		{"a frameset", `<frameset><frame src=x></frameset>Text`, []block{{Type: "text", Text: "Text"}}},
		{"bytes that are no UTF-8", "<p>a\xFFb\x00c", []block{{Type: "text", Text: "a\uFFFDbc"}}},
		{"white space", " \n", nil},
		{"nothing", "", nil},
	} {
		if d := cmp.Diff(c.want, fragmentOf(t, c.html)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestFragmentLimits(t *testing.T) {
	if _, err := Fragment(t.Context(), []byte("<p>12345"), "https://example.com/", &Options{MaxBytes: 4}); !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
	if _, err := Fragment(t.Context(), []byte(strings.Repeat("<p>a", 100)), "https://example.com/", &Options{MaxNodes: 50}); !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
	if _, err := Fragment(t.Context(), nil, "ftp://example.com/", nil); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
	if blocks, err := Fragment(t.Context(), []byte("<a href=b>x</a>"), "/a/", &Options{Base: "https://example.com/blog/"}); err != nil || blocks[0].URL != "https://example.com/blog/a/b" {
		t.Errorf("%+v %v", blocks, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Fragment(ctx, []byte(ordinary(1<<20)), "https://example.com/", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
