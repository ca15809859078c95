package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinks(t *testing.T) {
	res := extractPage(t, "https://example.com/a/b?x=1#top", `<!DOCTYPE html><head><base href="/c/"><link rel=next href="?page=2">
<link rel=stylesheet href=style.css><link rel="alternate" hreflang=de href=/de></head><body>
<nav><a href="/menu">Menu</a><a href="HTTPS://Example.COM:443/menu#part">again</a></nav>
<main><p>See <a href=" rel ative ">this</a>, <a href="#part">part</a>, <a href="">self</a>, <a href="/%7Eann">Ann</a>, <a href="/~ann">Ann</a>.</p>
<p><a href="//other.example/x" rel="noopener NoFollow">out</a> <a href="/ugc" rel=ugc>u</a> <a href="/ad" rel=sponsored>s</a> <a rel=nofollow href=/both>1</a> <a href=/both>2</a></p>
<a href="mailto:a@example.com">m</a> <a href="javascript:x()">j</a> <a href="tel:1">t</a> <a href="ftp://example.com/">f</a> <a href="https://u:p@example.com/">c</a> <a href=/file.zip download>d</a>
<map><area href=/area><area href=/got download=x></map> <svg><a href=/svg><text>x</text></a></svg> <button><a href=/button>x</a></button> <label><a href=/terms>terms</a></label>
<div hidden><a href=/hidden>h</a></div> <span style="display:none">x <b><a href=/hidden2>h</a></b></span> <noscript><a href=/noscript>n</a></noscript>
<template><a href=/template>no</a></template><script>document.write("<a href=/script>no</a>")</script><!-- <a href=/comment>no</a> --><textarea><a href=/area2></textarea><iframe src=/frame></iframe>
</main><footer><a href=/footer>f</a></footer>`)
	want := []Link{
		{URL: "https://example.com/c/?page=2"},
		{URL: "https://example.com/menu"},
		{URL: "https://example.com/c/rel%20ative"},
		{URL: "https://example.com/~ann"},
		{"https://other.example/x", true},
		{"https://example.com/ugc", true},
		{"https://example.com/ad", true},
		{URL: "https://example.com/both"},
		{URL: "https://example.com/area"},
		{URL: "https://example.com/svg"},
		{URL: "https://example.com/button"},
		{URL: "https://example.com/terms"},
		{URL: "https://example.com/hidden"},
		{URL: "https://example.com/hidden2"},
		{URL: "https://example.com/noscript"},
		{URL: "https://example.com/footer"},
	}
	if d := cmp.Diff(want, res.Links); d != "" {
		t.Error(d)
	}
	frames := extractPage(t, "https://example.com/", `<frameset><frame src=menu.html><frameset><frame src=text.html></frameset><noframes><a href=/no>x</a></noframes></frameset>`)
	if d := cmp.Diff([]Link{{URL: "https://example.com/menu.html"}, {URL: "https://example.com/text.html"}}, frames.Links); d != "" {
		t.Error(d)
	}
}

func TestLinksBounded(t *testing.T) {
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "<a href=/%d>x</a>", i)
	}
	res := extractPage(t, "https://example.com/", b.String())
	if len(res.Links) != 10_000 || res.Links[9_999].URL != "https://example.com/9999" {
		t.Errorf("%d links", len(res.Links))
	}
	if res := extractPage(t, "https://example.com/", "<a href='/"+strings.Repeat("x", 9000)+"'>x</a>"); len(res.Links) != 0 {
		t.Error("a URL that is too long is among the links")
	}
}

func TestDirectives(t *testing.T) {
	for value, want := range map[string][2]bool{
		"noindex":                               {true, false},
		"NoIndex, NOFOLLOW":                     {true, true},
		"none":                                  {true, true},
		"noarchive,none":                        {true, true},
		"noindex nofollow":                      {true, true},
		"index, follow, max-image-preview:none": {},
		"max-image-preview: none, max-snippet: -1":        {},
		"noimageindex, nositelinkssearchbox, notranslate": {},
		"indexifembedded": {},
		"unavailable_after: Friday, 25-Jun-10 15:00:00 noindex": {},
		"millrace: noindex":                     {true, false},
		"otherbot: noindex, nofollow":           {},
		"otherbot: noindex, millrace: nofollow": {false, true},
		"nofollow, otherbot: noindex":           {false, true},
		"*: none":                               {true, true},
		"":                                      {},
		" , ,:,":                                {},
	} {
		if noIndex, noFollow := directives(value); noIndex != want[0] || noFollow != want[1] {
			t.Errorf("%q: noindex %t, nofollow %t, want %v", value, noIndex, noFollow, want)
		}
	}
}

func TestRobots(t *testing.T) {
	for _, c := range []struct {
		head              string
		header            []string
		noIndex, noFollow bool
		source            string
	}{
		{"", nil, false, false, ""},
		{`<meta name=robots content="index,follow">`, []string{"all"}, false, false, ""},
		{`<META NAME="ROBOTS" CONTENT="NONE">`, nil, true, true, "meta robots"},
		{`<meta name=robots content=nofollow><meta name=Millrace content=noindex>`, nil, true, true, "meta millrace"},
		{`<meta name=googlebot content=none>`, nil, false, false, ""},
		{`<meta name=robots content=index>`, []string{"otherbot: none", "noindex"}, true, false, "X-Robots-Tag"},
		{`<meta name=robots content=noindex>`, []string{"nofollow"}, true, true, "meta robots"},
	} {
		res, err := HTML(t.Context(), []byte(c.head+"<p>x"), "https://example.com/", &Options{Robots: c.header})
		if err != nil {
			t.Fatal(err)
		}
		if res.Page.Access.NoIndex != c.noIndex || res.NoFollow != c.noFollow || res.Sources["access"] != c.source {
			t.Errorf("%s %q: noindex %t, nofollow %t, source %q", c.head, c.header, res.Page.Access.NoIndex, res.NoFollow, res.Sources["access"])
		}
	}
}

func TestFeeds(t *testing.T) {
	res := extractPage(t, "https://example.com/blog/", `<link rel=alternate type="application/rss+xml" href=/feed/><link rel="Alternate home" type="Application/Atom+XML; charset=utf-8" href=atom.xml>
<link rel=alternate type=application/feed+json href=https://feeds.example/x.json><link rel=alternate type=application/rss+xml href="/feed/#x">
<link rel=alternate type=application/json href=/wp-json/><link rel=alternate hreflang=de href=/de><link rel=alternate type=application/rss+xml><link rel=stylesheet type=application/rss+xml href=/no>
<p>x<link rel=alternate type=application/rss+xml href=/late>`)
	want := []string{"https://example.com/feed/", "https://example.com/blog/atom.xml", "https://feeds.example/x.json", "https://example.com/late"}
	if d := cmp.Diff(want, res.Feeds); d != "" {
		t.Error(d)
	}
	if len(res.Links) != 0 {
		t.Errorf("links %v", res.Links)
	}
}

func TestRefresh(t *testing.T) {
	for head, want := range map[string]string{
		`<meta http-equiv=refresh content="0; url=/en/">`:                         "https://example.com/en/",
		`<meta http-equiv="Refresh" content="0;URL='https://example.com/a;b,c'">`: "https://example.com/a;b,c",
		`<meta http-equiv=refresh content=" 3.5 , url = x ">`:                     "https://example.com/a/x",
		`<meta http-equiv=refresh content="0; /b">`:                               "https://example.com/b",
		`<meta http-equiv=refresh content="30; url=/news">`:                       "",
		`<meta http-equiv=refresh content="5">`:                                   "",
		`<meta http-equiv=refresh content="0;url=#top">`:                          "",
		`<meta http-equiv=refresh content="0;url=javascript:x()">`:                "",
		`<meta http-equiv=refresh content="soon;url=/b">`:                         "",
		`<noscript><meta http-equiv=refresh content="0;url=/nojs"></noscript>`:    "",
		`<meta name=refresh content="0;url=/b">`:                                  "",
	} {
		res := extractPage(t, "https://example.com/a/", "<head>"+head)
		if res.Refresh != want || (want != "") != (len(res.Links) == 1) {
			t.Errorf("%s: %q, links %v", head, res.Refresh, res.Links)
		}
	}
}

func TestLogin(t *testing.T) {
	form := `<form action=/session><label>Name</label><input name=u><label>Password</label><input type=password name=p><button>Go</button><p><a href=/lost>Lost your password?</a></p></form>`
	menu := `<nav>` + strings.Repeat("<a href=/x>one more entry</a> ", 40) + `</nav>`
	goods := strings.Repeat("<li><a href=/p>Mill stone</a> 12.50</li>", 20)
	prose := strings.Repeat("<p>Many words of plain text stand here, one after the other.</p>", 10)
	for _, c := range []struct {
		name, url, doc string
		want           bool
	}{
		{"bare", "/", `<h1>Welcome</h1>` + form, true},
		{"with a menu", "/", menu + `<main>` + form + `</main><footer>` + prose + `</footer>`, true},
		{"without a form element", "/", `<div><input type=password></div>`, true},
		{"protected post", "/2024/05/a/", menu + `<div id=side>` + strings.Repeat("<a href=/x>one more entry</a> ", 40) + `</div><article><h1>Protected: A</h1><form class=post-password-form>` +
			`<p>This content is password protected. To view it please enter your password below:</p><input type=password></form></article>`, true},
		{"second field", "/login", `<div class=modal><form><input type=password></form></div><main>` + form + `</main>`, true},
		{"protected post beside others", "/a/", `<body class="single postid-7"><form action=/wp-login.php?action=postpass><input type=password></form>` + prose, true},
		{"protected post of a list", "/blog/", `<body class="blog archive"><form class=post-password-form><input type=password></form>` + prose, false},
		{"list with a protected post", "/", `<form class=post-password-form><input type=password></form>` + prose, false},
		{"in the header", "/", `<header>` + form + `</header><main><h1>Shop</h1></main>`, false},
		{"small box", "/", `<div>` + form + `</div><ul>` + goods + `</ul>`, false},
		{"small box beside text", "/", `<div>` + form + `</div>` + prose, false},
		{"text about logging in", "/login", `<title>Log in</title>` + prose + form, false},
		{"hidden", "/", `<div style="display: none">` + form + `</div><p>Hello</p>`, false},
		{"in a dialog", "/", `<div class="login-modal">` + form + `</div><p>Hello</p>`, false},
		{"form around the page", "/", `<form>` + strings.Repeat(goods, 5) + `<input type=password></form>`, false},
		{"new account", "/", `<form><input type=password autocomplete=new-password></form>`, false},
		{"no field", "/login", `<title>Log in</title><p>Use your key.</p>`, false},
	} {
		res := extractPage(t, "https://example.com"+c.url, c.doc)
		if res.Login != c.want {
			t.Errorf("%s: %t", c.name, res.Login)
		}
		if want := c.want && strings.HasPrefix(c.name, "protected post"); res.Page.Access.Auth != want {
			t.Errorf("%s: Access.Auth is %t", c.name, res.Page.Access.Auth)
		}
	}
}
