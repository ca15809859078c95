package dashboard

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The list of pages, the pages about one page, and the form for rules work in a browser.
func TestRealBrowserContent(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	seed(t, o.handbook, 20)
	b := newBoard(t, o.SiteOptions, seedTime)
	open := chromium(t)
	for _, view := range []struct {
		name, theme string
		width       int64
	}{{"wide-light", "light", 1280}, {"wide-dark", "dark", 1280}, {"narrow-light", "light", 390}, {"narrow-dark", "dark", 390}} {
		t.Run(view.name, func(t *testing.T) {
			o.rules.Keep, o.rules.Drop = nil, nil
			w := open(t, view.width, view.theme)
			w.logIn(b)
			at := strings.TrimSuffix(b.url, "/")
			look := func(name string, holds ...string) {
				t.Helper()
				w.shoot(name + "-" + view.name)
				text := w.eval("document.querySelector('main').innerText")
				for _, f := range w.flaws() {
					t.Errorf("%s: %s", name, f)
				}
				for _, s := range holds {
					if !strings.Contains(text, s) {
						t.Errorf("%s does not say %q: %s", name, s, text)
					}
				}
			}
			w.open(at + "/pages")
			look("pages", "Promo", "/hostile.html")
			w.do(chromedp.SendKeys(chromedp.CSS("#q"), "promo"))
			w.send("main form button")
			look("pages-found", "/promo.html")
			w.open(at + "/pages?order=read")
			look("pages-read", "not published")
			w.open(at + "/pages?q=nothing+is+like+this")
			look("pages-none")
			w.open(at + "/page?url=/about/")
			look("page", "In each protocol", "TCT 01", "Latest requests from bots")
			w.open(at + "/page?url=/")
			look("page-home", "forged", "304")
			w.open(at + "/page?url=/about/&protocol=scp")
			look("page-scp", "This protocol has no document for a single page")
			w.open(at + "/page?url=/hostile.html&as=html")
			look("page-html-hostile", "alert(1)", "Sources of the fields")
			w.open(at + "/page?url=/about/&as=html")
			look("page-html", "tag footer", "Try to keep")
			w.open(at + "/page?url=/promo.html&as=rules")
			look("rules", "Rules for the whole site")
			w.do(chromedp.SendKeys(chromedp.CSS("#drop"), "a:hover"))
			w.send("main form button")
			look("rules-wrong", "a:hover")
			w.open(at + "/page?url=/promo.html&as=rules")
			w.do(chromedp.SendKeys(chromedp.CSS("#drop"), ".promo\nh2"))
			w.send("main form button")
			look("rules-tried", "Save rules", "Buy a wheel", "Other pages")
			if len(o.rules.Drop) != 0 {
				t.Fatal("a trial saved the rules")
			}
			w.send(`form[method=post][action$="/page/rules"] button`)
			look("rules-saved")
			if strings.Join(o.rules.Drop, " ") != ".promo h2" {
				t.Errorf("saved: %q", o.rules.Drop)
			}
		})
	}
}
