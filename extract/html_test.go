package extract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

type (
	block = millrace.Block
	span  = millrace.Span
	item  = millrace.Item
	cell  = millrace.Cell
)

var blockCases = []struct {
	name, html string
	want       []block
}{
	{"text with spans", `<p>See <a href="b.html#x y">the <em>best</em> page</a> and <code>go  run</code>, <strong><em>now</em></strong>.`, []block{
		{Type: "text", Text: "See the best page and go run, now.", Spans: []span{
			{Type: "link", Start: 4, End: 17, URL: "https://example.com/a/b.html#x%20y"},
			{Type: "emphasis", Start: 8, End: 12},
			{Type: "code", Start: 22, End: 28},
			{Type: "strong", Start: 30, End: 33},
			{Type: "emphasis", Start: 30, End: 33},
		}},
	}},
	{"line breaks", `<p>one<br>two<br><br>three`, []block{{Type: "text", Text: "one\ntwo"}, {Type: "text", Text: "three"}}},
	{"white space", "<p> a\n  <b> b </b>c&nbsp;&shy;d </p><p>&nbsp;</p>", []block{
		{Type: "text", Text: "a b c\u00a0d", Spans: []span{{Type: "strong", Start: 2, End: 3}}},
	}},
	{"invisible characters", "<p>a &shy;&#xFEFF; b&shy;c  d&nbsp;é</p>", []block{{Type: "text", Text: "a bc d\u00a0é"}}},
	{"links that go nowhere", `<p>a <a href="javascript:x()">b</a> <a name=c>c</a> <a href="mailto:d@example.com">d</a> <a href="tel:1">e</a>`, []block{
		{Type: "text", Text: "a b c d e", Spans: []span{{Type: "link", Start: 6, End: 7, URL: "mailto:d@example.com"}}},
	}},
	{"link around blocks", `<a href="/x"><h2>Head</h2><p>Text of it</p></a>`, []block{
		{Type: "heading", Level: 2, Text: "Head", Spans: []span{{Type: "link", Start: 0, End: 4, URL: "https://example.com/x"}}},
		{Type: "link", Text: "Text of it", URL: "https://example.com/x"},
	}},
	{"headings", `<h2 id=one>One <a class=headerlink href="#one">¶</a></h2><p>x</p><section id=two><h3>Two</h3></section><p>x</p><h4><a href="#three">#</a> Three</h4><p>x</p><div role=heading aria-level=5>Four</div>`, []block{
		{Type: "heading", Level: 2, Text: "One", Anchor: "one"},
		{Type: "text", Text: "x"},
		{Type: "heading", Level: 3, Text: "Two", Anchor: "two"},
		{Type: "text", Text: "x"},
		{Type: "heading", Level: 4, Text: "Three", Anchor: "three"},
		{Type: "text", Text: "x"},
		{Type: "heading", Level: 5, Text: "Four"},
	}},
	{"nested lists", `<ol start=3><li>a<ul><li>b</li></ul></li><li><p>c</p><p>d</p></li></ol>`, []block{
		{Type: "list", Ordered: true, Start: 3, Items: []item{
			{Text: "a", Blocks: []block{{Type: "list", Items: []item{{Text: "b"}}}}},
			{Text: "c", Blocks: []block{{Type: "text", Text: "d"}}},
		}},
	}},
	{"list in a list without an item", `<ul><li>a</li><ul><li>b</li></ul></ul>`, []block{
		{Type: "list", Items: []item{{Text: "a", Blocks: []block{{Type: "list", Items: []item{{Text: "b"}}}}}}},
	}},
	{"checkboxes", `<ul><li><input type=checkbox checked disabled> done</li><li><label><input type=checkbox> open</label></li><li>none</li></ul>`, []block{
		{Type: "list", Items: []item{{Text: "done", Task: true, Done: true}, {Text: "open", Task: true}, {Text: "none"}}},
	}},
	{"definitions", `<dl><dt>a<dt>b<dd>one<div><dt>c</dt><dd><p>two</p><pre>x</pre></dd></div></dl>`, []block{
		{Type: "definitions", Items: []item{{Term: "a\nb", Text: "one"}, {Term: "c", Text: "two", Blocks: []block{{Type: "code", Text: "x"}}}}},
	}},
	{"table of contents", `<dl><dt><a href=a>A</a><dd><dl><dt>1. <a href=b>B</a></dl><dt><a href=c>C</a></dl>`, []block{
		{Type: "list", Items: []item{
			{Text: "A", Spans: []span{{Type: "link", Start: 0, End: 1, URL: "https://example.com/a/a"}}, Blocks: []block{
				{Type: "list", Items: []item{{Text: "1. B", Spans: []span{{Type: "link", Start: 3, End: 4, URL: "https://example.com/a/b"}}}}},
			}},
			{Text: "C", Spans: []span{{Type: "link", Start: 0, End: 1, URL: "https://example.com/a/c"}}},
		}},
	}},
	{"code", "<pre><code class=\"language-go hljs\">\tif a &lt; b {\n\t}\n</code></pre>", []block{{Type: "code", Language: "go", Text: "\tif a < b {\n\t}\n"}}},
	{"code, language above", `<div class="highlight-source-shell"><div><pre>ls</pre></div></div><pre data-lang=SQL>SELECT</pre><pre class="brush: js; gutter: true">x()</pre><div class="sourceCode"><pre class="sourceCode haskell">x</pre></div>`, []block{
		{Type: "code", Language: "shell", Text: "ls"},
		{Type: "code", Language: "sql", Text: "SELECT"},
		{Type: "code", Language: "js", Text: "x()"},
		{Type: "code", Language: "haskell", Text: "x"},
	}},
	{"code with gutters", "<pre><span class=lineno>1</span>a\n<span style=\"user-select: none\">2 </span>b<button>Copy</button></pre>", []block{{Type: "code", Text: "a\nb"}}},
	{"code in a table", `<table><tr><td class=gutter><pre>1<br>2<br></pre></td><td class=code><pre>a<br>b<br></pre></td></tr></table>`, []block{{Type: "code", Text: "a\nb\n"}}},
	{"code in rows", `<table><tr><td class=blob-num data-line-number=1></td><td class=blob-code>a</td></tr><tr><td class=blob-num data-line-number=2></td><td class=blob-code>  b</td></tr></table>`, []block{
		{Type: "code", Text: "a\n  b\n"},
	}},
	{"code with the links of a program", `<pre><div class="viewcode-block" id="f"><a class="viewcode-back" href="../f.html#f">[docs]</a><span class="k">def</span> f():
    pass</div></pre>`, []block{{Type: "code", Text: "def f():\n    pass"}}},
	{"entries that lead to each other", `<dl><dt id="t.send"><a href="#sendfunc">sendfunc</a> t.send<dd>Called first.</dl><dl><dt id=sendfunc>int (*sendfunc)(int)<dd>See <a href="#t.send">send</a>.</dl>`, []block{
		{Type: "definitions", Items: []item{{Term: "sendfunc t.send", Text: "Called first."}}},
		{Type: "definitions", Items: []item{{Term: "int (*sendfunc)(int)", Text: "See send.", Spans: []span{{Type: "link", Start: 4, End: 8, URL: "https://example.com/a/page.html#t.send"}}}}},
	}},
	{"signs that are images", `<p>Well done <img class=emoji alt="👩🏽‍🌾" src="/e/1f469.svg"> here: <img width=16 height=16 alt="✔" src=/ok.png>, <img width=16 height=16 alt="ok" src=/ok.png></p><p><img alt="❤" src=/heart.jpg></p>`, []block{
		{Type: "text", Text: "Well done 👩🏽‍🌾 here: ✔,"}, {Type: "image", URL: "https://example.com/heart.jpg", Alt: "❤"},
	}},
	{"code by lines", `<pre><span class=line>a</span><span class=line>b</span></pre><pre><div>a</div><div>b</div></pre>`, []block{{Type: "code", Text: "a\nb"}, {Type: "code", Text: "a\nb"}}},
	{"table", `<table><caption>Cap</caption><thead><tr><th colspan=2>A<th>B</thead><tr><td rowspan=2>1<td><code>2</code><td>a<br>b<tr><td>4<td><p>5</p><p>6</p></table>`, []block{
		{Type: "table", Caption: "Cap", Rows: [][]cell{
			{{Text: "A", Header: true, Colspan: 2}, {Text: "B", Header: true}},
			{{Text: "1", Rowspan: 2}, {Text: "2", Spans: []span{{Type: "code", Start: 0, End: 1}}}, {Text: "a\nb"}},
			{{Text: "4"}, {Text: "5\n6"}},
		}},
	}},
	{"spans beyond the table", `<table><tr><th colspan=600 rowspan=9>a<th colspan=5000>b<th colspan=x rowspan=-1>c<tr><td>d</table>`, []block{
		{Type: "table", Rows: [][]cell{
			{{Text: "a", Header: true, Colspan: 600, Rowspan: 2}, {Text: "b", Header: true, Colspan: 400}, {Text: "c", Header: true}}, {{Text: "d"}},
		}},
	}},
	{"layout table", `<table><tr><td><h2>Left</h2><p>text</p></td><td><table><tr><th>a<th>b<tr><td>c<td>d</table></td></tr></table>`, []block{
		{Type: "heading", Level: 2, Text: "Left"},
		{Type: "text", Text: "text"},
		{Type: "table", Rows: [][]cell{{{Text: "a", Header: true}, {Text: "b", Header: true}}, {{Text: "c"}, {Text: "d"}}}},
	}},
	{"quote", `<blockquote cite="/src"><p>Said.</p><footer>— <cite>Who</cite></footer></blockquote>`, []block{
		{Type: "quote", URL: "https://example.com/src", Cite: "Who", Blocks: []block{{Type: "text", Text: "Said."}}},
	}},
	{"call-outs", `<div class="admonition warning"><p class="admonition-title">Mind</p><p>gap</p></div><p>x</p><div class=note><h3 class=title>Note</h3><p>n</p></div><p>x</p><aside class="callout callout-tip"><p>t</p></aside>`, []block{
		{Type: "callout", Kind: "warning", Title: "Mind", Blocks: []block{{Type: "text", Text: "gap"}}},
		{Type: "text", Text: "x"},
		{Type: "callout", Kind: "note", Title: "Note", Blocks: []block{{Type: "text", Text: "n"}}},
		{Type: "text", Text: "x"},
		{Type: "callout", Kind: "tip", Blocks: []block{{Type: "text", Text: "t"}}},
	}},
	{"figure", `<figure><img src="a.png" alt="An A"><figcaption>Fig. <b>1</b></figcaption></figure><figure><pre>x</pre><figcaption>Listing</figcaption></figure><figure><blockquote>q</blockquote><figcaption>— Me</figcaption></figure>`, []block{
		{Type: "image", URL: "https://example.com/a/a.png", Alt: "An A", Caption: "Fig. 1"},
		{Type: "code", Text: "x", Caption: "Listing"},
		{Type: "quote", Cite: "Me", Blocks: []block{{Type: "text", Text: "q"}}},
	}},
	{"images", `<p>a <img src="1.png"> b</p><img src="data:image/gif;base64,AA" data-src="/2.png"><img src=3.png srcset="3-s.png 100w, 3-l.png 900w"><picture><source srcset="4.avif 2x"><img src=4.png></picture><img src=5.png width=1 height=1><img src="data:,"><noscript><img src=6.png></noscript>`, []block{
		{Type: "text", Text: "a b"},
		{Type: "image", URL: "https://example.com/a/1.png"},
		{Type: "image", URL: "https://example.com/2.png"},
		{Type: "image", URL: "https://example.com/a/3-l.png"},
		{Type: "image", URL: "https://example.com/a/4.avif"},
		{Type: "image", URL: "https://example.com/a/6.png"},
	}},
	{"video and audio", `<video poster=p.jpg><source src=v.mp4 type=video/mp4><source src=v.webm><track src=t.vtt kind=captions srclang=en label=English></video><audio src=a.mp3></audio><video></video>`, []block{
		{Type: "video", URL: "https://example.com/a/v.mp4", Poster: "https://example.com/a/p.jpg", Sources: []millrace.MediaSource{
			{URL: "https://example.com/a/v.mp4", Type: "video/mp4"}, {URL: "https://example.com/a/v.webm"},
		}, Tracks: []millrace.Track{{URL: "https://example.com/a/t.vtt", Kind: "captions", Language: "en", Label: "English"}}},
		{Type: "audio", URL: "https://example.com/a/a.mp3"},
	}},
	{"embeds", `<iframe src="https://www.youtube.com/embed/x" title="A film"></iframe><iframe src="https://www.googletagmanager.com/ns.html"></iframe><iframe src="https://maps.example.org/m"></iframe>`, []block{
		{Type: "embed", URL: "https://www.youtube.com/embed/x", Kind: "youtube", Title: "A film"}, {Type: "embed", URL: "https://maps.example.org/m", Kind: "maps.example.org"},
	}},
	{"footnotes", `<p>Text<sup id=r1><a href="#fn1">1</a></sup> and <a href="#note2" id=r2>[*]</a>.</p><ol><li id=fn1><p>First. <a href="#r1">↩</a></p></li></ol><p id=note2>* Second <a href="#r2">back</a></p>`, []block{
		{Type: "text", Text: "Text[1] and [*].", Spans: []span{{Type: "footnote", Start: 4, End: 7, URL: "fn1"}, {Type: "footnote", Start: 12, End: 15, URL: "note2"}}},
		{Type: "footnote", Anchor: "fn1", Text: "1", Blocks: []block{{Type: "text", Text: "First."}}},
		{Type: "footnote", Anchor: "note2", Text: "*", Blocks: []block{{Type: "text", Text: "Second"}}},
	}},
	{"no footnotes", `<p>See <a href="#eq1">(1)</a> and <a href="#s">2</a>.</p><p id=eq1>x = y (1)</p><h2 id=s>Section</h2><p>text`, []block{
		{Type: "text", Text: "See (1) and 2.", Spans: []span{{Type: "link", Start: 4, End: 7, URL: "https://example.com/a/page.html#eq1"}, {Type: "link", Start: 12, End: 13, URL: "https://example.com/a/page.html#s"}}},
		{Type: "text", Text: "x = y (1)"},
		{Type: "heading", Level: 2, Text: "Section", Anchor: "s"},
		{Type: "text", Text: "text"},
	}},
	{"math", `<p>So <span class=katex><span class=katex-mathml><math><semantics><mrow><mi>x</mi></mrow><annotation encoding="application/x-tex">x^2</annotation></semantics></math></span><span class=katex-html aria-hidden=true>x2</span></span> and <script type="math/tex">y</script>.</p><script type="math/tex; mode=display"> a = b </script><math display=block><mi>z</mi></math><p><math><mi>q</mi><mo>=</mo><mn>1</mn></math></p>`, []block{
		{Type: "text", Text: "So x^2 and y.", Spans: []span{{Type: "math", Start: 3, End: 6}, {Type: "math", Start: 11, End: 12}}},
		{Type: "math", Text: "a = b", Language: "tex"},
		{Type: "math", Text: `<math display="block"><mi>z</mi></math>`, Language: "mathml"},
		{Type: "text", Text: "q=1", Spans: []span{{Type: "math", Start: 0, End: 3}}},
	}},
	{"a link that stands alone", `<p>x</p><p><a href="/more"><b>Read more</b></a></p>`, []block{
		{Type: "text", Text: "x"},
		{Type: "text", Text: "Read more", Spans: []span{{Type: "link", Start: 0, End: 9, URL: "https://example.com/more"}, {Type: "strong", Start: 0, End: 9}}},
	}},
	{"boilerplate", `<div role=search>Search this site</div><p>The text of the page is here, and long enough.</p><div hidden>secret</div><p>More of it <span aria-hidden=true>icon</span>here.</p><form><label>Mail <input></label><button>Go</button></form><template><p>t</p></template><script>s</script>`, []block{
		{Type: "text", Text: "The text of the page is here, and long enough."}, {Type: "text", Text: "More of it here."},
	}},
	{"accordion", `<h2><button aria-controls=p1>Question?</button></h2><div id=p1 style="display: none"><p>The answer.</p></div><p>And a longer text after it.</p>`, []block{
		{Type: "heading", Level: 2, Text: "Question?"}, {Type: "text", Text: "The answer."}, {Type: "text", Text: "And a longer text after it."},
	}},
	{"right to left and CJK", `<p dir=rtl>שלום <b>עולם</b></p><p>日本語の<em>文章</em>です。</p>`, []block{
		{Type: "text", Text: "שלום עולם", Spans: []span{{Type: "strong", Start: 9, End: 17}}},
		{Type: "text", Text: "日本語の文章です。", Spans: []span{{Type: "emphasis", Start: 12, End: 18}}},
	}},
}

func TestBlockForms(t *testing.T) {
	for _, c := range blockCases {
		t.Run(c.name, func(t *testing.T) {
			res, err := HTML(t.Context(), []byte("<title>Other</title><body><main>"+c.html), "https://example.com/a/page.html", nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, res.Page.Blocks); d != "" {
				t.Error(d)
			}
			checkBlocks(t, res.Page.Blocks)
		})
	}
}

// The entries of an API reference are not footnotes, even if an anchor starts with "fn", or an entry
// has a footnote of its own.
func TestAPIEntries(t *testing.T) {
	t.Parallel()
	const page = `<p>See <a href="#fnmatch.a">a()</a> and <a href="#C">C</a>.</p><dl><dt id=fnmatch.a>a(x)</dt><dd><p>Matches.</p></dd>
<dt id=C>C</dt><dd><p>Made<a id=r href="#n1">[1]</a>.</p><aside id=n1 class=footnote role=doc-footnote>[<a role=doc-backlink href="#r">1</a>]<p>Once.</p></aside></dd></dl>`
	res, err := HTML(t.Context(), []byte("<title>A</title><main><h1>A</h1>"+page+"</main>"), "https://example.com/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := millrace.Text(res.Page.Blocks)
	if !strings.HasPrefix(text, "See a() and C.") || !strings.Contains(text, "Made[1].") || strings.Count(text, "Once.") != 1 {
		t.Errorf("%s", text)
	}
}
