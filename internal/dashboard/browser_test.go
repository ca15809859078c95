package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/mirror"
)

// browserPages lists the pages that are tested in both themes, narrow and wide.
var browserPages = []struct {
	name, path string
	// contains is text that the page must contain.
	holds string
}{
	{"overview", "/", "ClaudeBot"},
	{"traffic", "/traffic", "Protocols"},
	{"traffic-bot", "/traffic?bot=GPTBot&by=outcome&range=90d", "Only Bot GPTBot"},
	{"traffic-hours", "/traffic?range=24h&by=bot&measure=bytes", "Requests"},
	{"traffic-empty", "/traffic?from=2020-01-01&to=2020-01-31", "No requests"},
	{"changes", "/changes", "added"},
	{"changes-none", "/changes?what=removed", "No changes"},
	{"searches", "/searches?days=30", "undershot wheel"},
	{"protocols", "/protocols", "Check all"},
	{"policy", "/policy", "as configured"},
	{"errors", "/errors?days=30", "no content"},
	{"errors-reason", "/errors?reason=noindex", "Skipped for this reason"},
	{"unusual", "/unusual?days=30", "Forged names"},
	{"missing", "/no-such-page", "Back to the overview"},
}

const (
	boardPath     = "/dashboard"
	boardPassword = "quiet-water-runs-deep"
)

// board is a dashboard on loopback.
type board struct {
	*Dashboard
	url string // ends with "/"
}

// newBoard starts a dashboard of a site. If now is zero, its clock is the real one.
func newBoard(t testing.TB, s *SiteOptions, now time.Time) *board {
	t.Helper()
	hash, err := HashPassword(boardPassword)
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Path: boardPath, Password: hash, Sessions: newSessions(), Logger: slog.New(slog.DiscardHandler)}
	if !now.IsZero() {
		o.Now = func() time.Time { return now }
	}
	d, err := New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(boardPath+"/", http.StripPrefix(boardPath, d))
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return &board{d, srv.URL + boardPath + "/"}
}

// chromium starts a browser. The returned function opens a new window with each call.
func chromium(t *testing.T) func(t *testing.T, width int64, theme string) *window {
	t.Helper()
	path := testkit.Real(t, "chromium|chromium-browser|google-chrome")
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox,
		chromedp.NoFirstRun, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true))
	t.Cleanup(cancel)
	browser, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, width int64, theme string) *window {
		t.Helper()
		w := &window{t: t}
		var cancel context.CancelFunc
		w.ctx, cancel = chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
		t.Cleanup(cancel)
		var late context.CancelFunc
		w.ctx, late = context.WithTimeout(w.ctx, 10*time.Minute)
		t.Cleanup(late)
		w.setView(width, theme)
		if err := chromedp.Listen(w.ctx, w.hear); err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// window is a browser window, with the errors that the browser has logged.
type window struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	bad []string
}

func (w *window) hear(ev any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch ev := ev.(type) {
	case *log.EventEntryAdded:
		// Error pages are tested too, so ignore their status.
		if ev.Entry.Level == "error" && ev.Entry.Source != "network" {
			w.bad = append(w.bad, ev.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		w.bad = append(w.bad, ev.ExceptionDetails.Text)
	}
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := chromedp.Do(w.ctx, steps...); err != nil {
		w.t.Fatal(err)
	}
}

// open opens a page. logIn logs in to a dashboard.
func (w *window) open(url string) {
	w.t.Helper()
	w.do(chromedp.Navigate(url))
}

func (w *window) logIn(b *board) {
	w.t.Helper()
	w.open(b.url)
	w.do(chromedp.SendKeys(chromedp.CSS("#password"), boardPassword))
	w.send("form button")
	if at := w.eval("location.pathname"); at != boardPath+"/" {
		w.t.Fatalf("after the login, the page is %s", at)
	}
}

// send presses a button of a form, and waits for the next page.
func (w *window) send(button string) {
	w.t.Helper()
	if _, err := chromedp.RunResponse(w.ctx, chromedp.Click(chromedp.CSS(button))); err != nil {
		w.t.Fatal(err)
	}
}

// eval runs a script in the page and returns its result as text.
func (w *window) eval(script string) string {
	w.t.Helper()
	s, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](script))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// shoot saves a screenshot of the whole page.
func (w *window) shoot(name string) {
	w.t.Helper()
	png, err := chromedp.Run(w.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.t.ArtifactDir(), name+".png"), png, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// flaws returns the visible faults of a page: content wider than the window, text with low
// contrast, missing names, and errors logged by the browser.
func (w *window) flaws() []string {
	w.t.Helper()
	found := strings.Fields("")
	if s := w.eval(flawsScript); s != "" {
		found = strings.Split(s, "\n")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	found = append(found, w.bad...)
	w.bad = nil
	return found
}

const flawsScript = `(() => {
	const bad = [];
	const name = (e) => e.tagName.toLowerCase() + (e.className && e.className.baseVal === undefined ? "." + e.className : "") + " " + JSON.stringify((e.textContent || "").trim().slice(0, 40));
	if (document.documentElement.scrollWidth > innerWidth) bad.push("the page is " + document.documentElement.scrollWidth + " wide in a window of " + innerWidth);
	if (document.querySelectorAll("h1").length !== 1) bad.push("not one h1");
	if (!document.querySelector("main")) bad.push("no main");
	if (!document.title.trim() || !document.documentElement.lang) bad.push("no title or language");
	const ids = new Set();
	for (const e of document.querySelectorAll("[id]")) { if (ids.has(e.id)) bad.push("two of id " + e.id); ids.add(e.id); }
	for (const e of document.querySelectorAll("input:not([type=hidden]):not([aria-hidden]), select, textarea")) if (!e.labels.length && !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby")) bad.push("no label: " + name(e) + e.name);
	for (const e of document.querySelectorAll("button, a[href], summary")) if (!(e.textContent.trim() || e.getAttribute("aria-label"))) bad.push("no text: " + e.outerHTML.slice(0, 80));
	for (const e of document.querySelectorAll("img:not([alt])")) bad.push("no alt: " + e.src);
	for (const e of document.querySelectorAll("table")) if (!e.caption) bad.push("no caption: " + name(e));
	for (const e of document.querySelectorAll(".scroll")) if (e.checkVisibility({ contentVisibilityAuto: true }) && e.scrollWidth > e.clientWidth + 1 && !e.closest(".figures")) bad.push("scrolls sideways: " + (e.querySelector("caption") || e).textContent.trim());
	for (const e of document.querySelectorAll("time")) if (e.textContent.startsWith("in ")) bad.push("not yet: " + name(e));
	for (const e of document.querySelectorAll("form[method=post]")) if (!e.querySelector("input[name=csrf]").value) bad.push("no token: " + e.action);
	for (const e of document.querySelectorAll("[style]")) if (!e.closest(".plot")) bad.push("a style of its own: " + name(e));
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	canvas.canvas.width = canvas.canvas.height = 1;
	const paint = (layers) => {
		canvas.clearRect(0, 0, 1, 1);
		for (const c of layers) { canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); }
		return canvas.getImageData(0, 0, 1, 1).data;
	};
	const light = (c) => { const [r, g, b] = [...c].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const told = new Set();
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const e = walker.currentNode.parentElement;
		if (!walker.currentNode.data.trim() || !e.checkVisibility() || e.closest(".hidden, .skip, .plot")) continue;
		const layers = [];
		for (let a = e; a; a = a.parentElement) layers.unshift(getComputedStyle(a).backgroundColor);
		const back = paint(layers), front = paint([...layers, getComputedStyle(e).color]);
		const [a, b] = [light(back), light(front)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
		if (ratio < 4.5 && !told.has(e.className)) { told.add(e.className); bad.push("contrast " + ratio.toFixed(1) + ": " + name(e)); }
		const box = e.getBoundingClientRect();
		if ((box.right > innerWidth + 1 || box.left < -1) && !e.closest(".scroll, pre, svg")) bad.push("cut off: " + name(e));
	}
	return bad.join("\n");
})()`

// Every page is complete and readable in both themes, on a phone and on a desktop.
func TestRealBrowserPages(t *testing.T) {
	t.Parallel()
	b := newBoard(t, seeded(t), seedTime)
	w := chromium(t)(t, views[0].width, views[0].theme)
	w.open(b.url)
	w.checkViews("login")
	w.logIn(b)
	for _, p := range browserPages {
		w.open(strings.TrimSuffix(b.url, "/") + p.path)
		if text := w.eval("document.querySelector('main').innerText"); !strings.Contains(text, p.holds) {
			t.Errorf("%s does not say %q: %s", p.name, p.holds, text)
		}
		w.checkViews(p.name)
	}
}

// views are the window sizes and themes of the tests.
var views = []struct {
	name, theme string
	width       int64
}{
	{"wide-light", "light", 1280},
	{"wide-dark", "dark", 1280},
	{"narrow-dark", "dark", 390},
	{"narrow-light", "light", 390},
}

// checkViews checks the open page in all views.
func (w *window) checkViews(name string) {
	w.t.Helper()
	for _, v := range views {
		w.setView(v.width, v.theme)
		w.shoot(name + "-" + v.name)
		for _, f := range w.flaws() {
			w.t.Errorf("%s, %s: %s", name, v.name, f)
		}
	}
}

// setView sets the width of the window and the theme of the system.
func (w *window) setView(width int64, theme string) {
	w.t.Helper()
	w.do(chromedp.EmulateViewport(width, 900))
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
	if _, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, media); err != nil {
		w.t.Fatal(err)
	}
}

// seeded returns the handbook site with requests of some weeks.
func seeded(t *testing.T) *SiteOptions {
	t.Helper()
	h := newHandbook(t, "https://handbook.test/", false)
	seed(t, h, 35)
	h.LastScan = func(context.Context) (*SourceScan, error) {
		return &SourceScan{
			Time: seedTime.Add(-4 * time.Minute), As: "folder", Counts: millrace.Counts{}, Requested: 7, SkippedN: 2,
			Skipped: []mirror.Skip{{URL: "https://handbook.test/draft.html", Reason: "noindex"}, {URL: "https://handbook.test/<b>x.html", Reason: "no content"}},
		}, nil
	}
	table, err := bots.New(&bots.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h.Access = &AccessSettings{Bots: table, BotRules: []BotRule{{"training", "403"}, {"GPTBot", "2/s"}}}
	h.Save = func(context.Context, config.Changes) error { return nil }
	return h.SiteOptions
}
