package dashboard

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Login, theme, menu and logout work in a browser, and the charts can be explored with the
// mouse and the keyboard.
func TestRealBrowserLogin(t *testing.T) {
	t.Parallel()
	b := newBoard(t, seeded(t), seedTime)
	open := chromium(t)

	t.Run("login", func(t *testing.T) {
		w := open(t, 390, "light")
		w.open(b.url + "traffic?range=7d")
		w.do(chromedp.SendKeys(chromedp.CSS("#password"), "wrong"))
		w.send("form button")
		if text := w.eval("String(document.querySelector('.message.bad'))"); text == "null" {
			t.Error("a wrong password: no message")
		}
		w.shoot("login-wrong-narrow-light")
		for _, f := range w.flaws() {
			t.Error(f)
		}
		w.do(chromedp.SendKeys(chromedp.CSS("#password"), boardPassword+kb.Enter), chromedp.WaitVisible(chromedp.CSS(".tabs")))
		if at := w.eval("location.pathname+location.search"); at != boardPath+"/traffic?range=7d" {
			t.Errorf("after the login, the page is %s", at)
		}
		if cookies := w.eval("document.cookie"); cookies != "" {
			t.Errorf("scripts can read the cookies %s", cookies)
		}
	})

	t.Run("theme", func(t *testing.T) {
		w := open(t, 1280, "light")
		w.logIn(b)
		paper := func() string { return w.eval("getComputedStyle(document.body).color") }
		light := paper()
		w.send("button[value=dark]")
		dark := paper()
		w.open(b.url + "traffic")
		if w.eval("document.documentElement.dataset.theme") != "dark" || dark == light || paper() != dark {
			t.Errorf("dark is %s, light %s", dark, light)
		}
		w.shoot("traffic-wide-chosen-dark")
		w.send("button[value=auto]")
		if got := paper(); got != light {
			t.Errorf("the theme is %s, want %s", got, light)
		}
	})

	t.Run("menu", func(t *testing.T) {
		w := open(t, 390, "dark")
		w.logIn(b)
		w.do(chromedp.Click(chromedp.CSS(".menu summary")), chromedp.WaitVisible(chromedp.CSS(".nav")))
		w.shoot("menu-narrow-dark")
		for _, f := range w.flaws() {
			t.Error(f)
		}
		w.send(`.nav a[href$="/traffic"]`)
		if at := w.eval("location.pathname"); at != boardPath+"/traffic" {
			t.Errorf("the link of the menu opens %s", at)
		}
	})

	t.Run("logout", func(t *testing.T) {
		w := open(t, 1280, "light")
		w.logIn(b)
		w.send(`form[action$="/logout"] button`)
		w.open(b.url + "traffic")
		if at := w.eval("location.pathname"); at != boardPath+"/login" {
			t.Errorf("after the logout, the page is %s", at)
		}
	})

	t.Run("days", func(t *testing.T) {
		w := open(t, 1280, "light")
		w.logIn(b)
		w.open(b.url + "traffic?bot=GPTBot")
		w.do(chromedp.Click(chromedp.CSS(".other summary")), chromedp.SetValue(chromedp.CSS("#from"), "2026-11-01"), chromedp.SetValue(chromedp.CSS("#to"), "2026-11-05"))
		w.send(".other button")
		if text := w.eval("document.querySelector('.figures').textContent"); !strings.Contains(text, "Thu 5 Nov 2026") || strings.Contains(text, "6 Nov") || strings.Contains(text, "31 Oct") {
			t.Errorf("five days: %s", text)
		}
		if at := w.eval("location.search"); !strings.Contains(at, "bot=GPTBot") {
			t.Errorf("the filter for the bot was lost: %s", at)
		}
	})

	t.Run("chart", func(t *testing.T) {
		w := open(t, 1280, "light")
		w.logIn(b)
		w.do(chromedp.WaitVisible(chromedp.CSS(".plot canvas")))
		w.eval(`document.querySelector(".plot").scrollIntoView({ block: "center", behavior: "instant" }); ""`)
		box, err := chromedp.Run(w.ctx, chromedp.Dimensions(chromedp.CSS(".u-over")))
		if err != nil {
			t.Fatal(err)
		}
		x, y := box.Content[0], box.Content[1]
		w.do(chromedp.MouseEvent(chromedp.MouseMoved, x+float64(box.Width)/2, y+float64(box.Height)/2), chromedp.WaitVisible(chromedp.CSS(".tip")))
		if tip := w.eval("document.querySelector('.tip').textContent"); !strings.Contains(tip, "Nov 2026") || !strings.Contains(tip, "Total") {
			t.Errorf("the figures at the mouse pointer: %s", tip)
		}
		w.shoot("chart-pointed-wide-light")
		w.do(chromedp.Focus(chromedp.CSS(".plot")), chromedp.KeyEvent(kb.End))
		last := w.eval("document.querySelector('.tip b').textContent")
		w.do(chromedp.KeyEvent(kb.ArrowLeft))
		if before := w.eval("document.querySelector('.tip b').textContent"); last != "Fri 20 Nov 2026" || before != "Thu 19 Nov 2026" {
			t.Errorf("by keyboard: %s, then %s", last, before)
		}
		w.do(chromedp.Click(chromedp.CSS(".legend li:first-child button")))
		if first := w.eval("document.querySelector('.legend button').getAttribute('aria-pressed')"); first != "false" {
			t.Errorf("the first series is %s", first)
		}
		w.shoot("chart-less-wide-light")
		for _, f := range w.flaws() {
			t.Error(f)
		}
	})

	t.Run("no script", func(t *testing.T) {
		w := open(t, 390, "light")
		if _, err := chromedp.Call(w.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
			t.Fatal(err)
		}
		w.logIn(b)
		w.do(chromedp.WaitVisible(chromedp.CSS(".figures table")), chromedp.WaitNotVisible(chromedp.CSS(".plot")))
		w.shoot("overview-noscript-narrow-light")
		w.do(chromedp.Click(chromedp.CSS(".menu summary")), chromedp.WaitVisible(chromedp.CSS(".nav")))
		w.send("button[value=dark]")
		w.do(chromedp.WaitVisible(chromedp.CSS("html[data-theme=dark]")))
	})
}
