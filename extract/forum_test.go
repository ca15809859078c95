package extract

import (
	"strings"
	"testing"
)

func TestPosts(t *testing.T) {
	const generator = "<meta name=generator content='phpBB'>"
	says := func(n string) string {
		return "<p>Post " + n + " says that the wheel turns too fast since the rain, and asks what others do about it.</p>"
	}
	checkLocated(t, []locatedPage{
		{
			"XenForo", generator + "<main>" + strings.Repeat(`<article class=message><section class=message-user><div class=message-avatar><a href=/u class=avatar><span>A</span></a></div>
<div><h4><a href=/u class=username>AnnMiller</a></h4><h5 class=userTitle>Old hand</h5></div><div class=message-userExtras><dl><dt>Joined<dd>May 2019</dl></div></section>`+says("one")+
				`<aside class=message-signature><p>Grind slowly</p></aside></article>`, 3) + "</main>",
			[]string{"AnnMiller", "Post one"},
			[]string{"Old hand", "Joined", "May 2019", "Grind slowly"},
		},
		{
			"phpBB", generator + strings.Repeat(`<div class="post bg2"><dl class=postprofile><dt><a href=/u class=username>AnnMiller</a></dt><dd>Posts: 138</dd></dl>`+says("two")+
				`</div>`, 3),
			[]string{"AnnMiller", "Post two"},
			[]string{"138"},
		},
		{
			"comments on an answer", generator + strings.Repeat(`<div class=answer itemscope itemtype=https://schema.org/Answer>`+says("three")+says("three")+says("three")+says("three")+says("three")+
				`<div class=comments><ul class=comments-list><li>Me too, said the weaver.</ul></div></div>`, 3),
			[]string{"Post three"},
			[]string{"weaver"},
		},
		{"comments that are the thread", generator + "<h1>Wheels</h1><div class=comments>" + strings.Repeat("<div class=comment>"+says("four")+"</div>", 9) + "</div>", []string{"Post four"}, nil},
		{"no thread", "<main>" + filler + `<div class=poster><p>A poster of the year 1890 shows the mill.</p></div><p class=signature>Signed: the miller</p></main>`, []string{"1890", "Signed"}, nil},
		{"a card without a name", generator + "<main>" + filler + "<dl class=postprofile><dd>138 posts</dd></dl></main>", []string{"miller"}, []string{"138"}},
	})
}

func TestSections(t *testing.T) {
	teasers := strings.Repeat("<div><a href=/x>Another text about stones</a><p>It begins so.</p></div>", 3)
	sources := "<ul>" + strings.Repeat("<li>Ann Weaver, <i>On the wheels of mills and rivers</i>, Kent 1890, page 12, <a href=/x>scan</a></li>", 3) + "</ul>"
	doc := func(s string) string { return "<main>" + filler + filler + s + "</main>" }
	checkLocated(t, []locatedPage{
		{"in a box", doc("<section><h2>Related posts</h2>" + teasers + "</section><p>Last word.</p>"), []string{"miller", "Last word"}, []string{"Related", "Another text"}},
		{"a heading of the text", doc("<h2>Related work on wheels</h2>" + filler), []string{"Related work"}, nil},
		{"related to something", doc("<section><h2>Related to wheels</h2>" + teasers + "</section>"), []string{"Another text"}, nil},
		{"another word", doc("<section><h2>Recently</h2>" + teasers + "</section>"), []string{"Another text"}, nil},
		{"sources", doc("<h2>Related</h2>" + sources), []string{"On the wheels"}, nil},
		{"without links", doc("<section><h2>Popular mills</h2><p>The mill of Kent.</p></section>"), []string{"mill of Kent"}, nil},
		{"documentation", "<meta name=generator content=docbook>" + doc("<section><h2>Related options</h2>"+teasers+"</section>"), []string{"Another text"}, nil},
		{"reviews of books", doc("<section><h2>Reviews</h2><p>Grinds well.</p></section>"), []string{"Grinds well"}, nil},
	})
	res := extractPage(t, "https://example.com/a", doc("<section><h2>Related posts</h2>"+teasers+"</section>"))
	if len(res.Dropped) != 1 || res.Dropped[0].Reason != headingReason+"related posts" || res.Dropped[0].Selector != "body section" {
		t.Errorf("dropped %+v", res.Dropped)
	}
}
