package extract

import (
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

func TestWalls(t *testing.T) {
	form := `<form><input name=name><input type=password></form>`
	for _, c := range []struct{ name, url, doc, want string }{
		{"Cloudflare", "/", `<title>Just a moment...</title><h1>example.com</h1><p>Verifying you are human. This may take a few seconds.</p>`, "robot-wall"},
		{"Cloudflare, blocked", "/", `<title>Attention Required! | Cloudflare</title><h1>Sorry, you have been blocked</h1>`, "robot-wall"},
		{"DataDome", "/", `<title>example.com</title><p id=cmsg>Please enable JS and disable any ad blocker</p>`, "robot-wall"},
		{"Imperva", "/", `<iframe id=main-iframe src="/_Incapsula_Resource?x=1">Request unsuccessful.</iframe>`, "robot-wall"},
		{"Akamai", "/", `<title>Access Denied</title><h1>Access Denied</h1>You don't have permission to access this page on this server.`, "robot-wall"},
		{"proof of work", "/", `<title>Making sure you&#39;re not a bot!</title><h1>Wait</h1>` + filler, "robot-wall"},
		{"puzzle", "/", `<title>Shop</title><h4>Type the characters below</h4><p>We have to make sure you’re not a robot.</p>`, "robot-wall"},
		{"needs scripts", "/", `<div id=root></div><noscript>You need to enable JavaScript to run this app.</noscript>`, "script-wall"},
		{"asks for scripts", "/", `<div>JavaScript is required to view this page.</div>`, "script-wall"},
		{"drawn by scripts", "/", `<title>App</title><script type=module src=/a.js></script><body><div id=root></div>`, "script-wall"},
		{"drawn by scripts, with a notice", "/", `<title>App</title><app-root><div>Loading…</div></app-root><app-menu></app-menu><script src=/a.js></script>`, "script-wall"},
		{"consent", "/", `<div id=onetrust-consent-sdk>` + filler + `</div><p>Loading</p>`, "consent-wall"},
		{"consent elsewhere", "consent.example.com/m?continue=x", `<h1>Before you continue</h1>` + filler, "consent-wall"},
		{"log-in", "/login", `<title>Log in</title><p>Welcome back.</p>` + form, "login"},
		{"leads on", "/", `<meta http-equiv=refresh content="0; url=/x"><title>Moved</title>`, "redirect-only"},

		{"text on walls", "/", `<title>Just a moment in time</title><main><h1>Just a moment in time</h1>` + filler + `</main>`, ""},
		{"text on robots", "/", `<title>Access denied: a history</title><main>` + filler + `<p>It asked me to verify you are human, said the miller.</p>` + filler + `</main>`, ""},
		{"text on scripts", "/", `<title>Scripts</title><main>` + filler + `<p>JavaScript is required here.</p></main>`, ""},
		{"scripts wanted beside a text", "/", `<noscript><div>Please enable JavaScript.</div></noscript><main>` + filler + `</main>`, ""},
		{"consent above a text", "/", `<div id=onetrust-consent-sdk>We use cookies.</div><main>` + filler + `</main>`, ""},
		{"short page with scripts", "/", `<title>Mill</title><p>The mill is closed today.</p><div id=x></div><script src=/a.js></script>`, ""},
		{"short page", "/", `<title>Mill</title><p>The mill is closed today.</p>`, ""},
	} {
		url := "https://" + c.url
		if c.url[0] == '/' {
			url = "https://example.com" + c.url
		}
		res := extractPage(t, url, c.doc)
		if millrace.ErrorCode(res.Reason) != c.want {
			t.Errorf("%s: reason %v, want %q; text %q", c.name, res.Reason, c.want, res.Page.Text())
		}
		if c.want == "" == (len(res.Page.Blocks) == 0) {
			t.Errorf("%s: %d blocks", c.name, len(res.Page.Blocks))
		}
		if strings.Contains(res.Page.Text(), "enable JavaScript") {
			t.Errorf("%s: %q", c.name, res.Page.Text())
		}
	}
}

func TestNoscript(t *testing.T) {
	says := "<noscript><p>Your browser does not support JavaScript, so that most of this page does not work as well as it could.</p></noscript>"
	res := extractPage(t, "https://example.com/", "<main>"+filler+says+filler+"<aside>"+says+"</aside><noscript>"+filler+"<p>A text for all.</p></noscript></main>")
	if text := res.Page.Text(); strings.Contains(text, "browser") || !strings.Contains(text, "A text for all.") {
		t.Errorf("%q", text)
	}
}

// Browsers with scripts do not parse noscript, so authors do not notice unclosed elements in it.
// These must not swallow the rest of the page.
func TestNoscriptUnclosed(t *testing.T) {
	for _, frame := range []string{
		`<noscript><iframe src="/t" style="display:none" /></noscript>`, `<NOSCRIPT><iframe src="/t"></NOSCRIPT>`, `<noscript><style>p{}</noscript><noscript><textarea>x</noscript>`,
		`<noscript><iframe src="/t"></iframe></noscript>`, `<script>document.write("<noscript><iframe></noscript>")</script>`, `<noscript><noscript><iframe></noscript></noscript>`,
	} {
		res := extractPage(t, "https://example.com/", "<body>"+frame+"<main><p>The mill is closed today.</p></main>")
		if text := res.Page.Text(); text != "The mill is closed today." {
			t.Errorf("%s: %q, %s", frame, text, res.Reason)
		}
	}
}
