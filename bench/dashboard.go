package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// views is the number of measured first views.
const views = 7

// dashboard measures the first view of the dashboard in Chromium, with a cold browser
// cache and a server that has handled only the login.
func (b *bench) dashboard(ctx context.Context) error {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		return errors.New("no Chromium found")
	}
	file, err := b.fill(ctx, 2000)
	if err != nil {
		return err
	}
	v := &visitor{rng: rand.New(rand.NewPCG(4, 4)), now: time.Now().AddDate(0, 0, -visitDays), scale: 1}
	st, err := stores.Open(ctx, file, &store.Options{Now: func() time.Time { return v.now }})
	if err != nil {
		return err
	}
	_, err = v.visit(ctx, st.Usage(), 100_000)
	if err = errors.Join(err, st.Close()); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, b.binary, "keys", "password").Output()
	if err != nil {
		return err
	}
	password, _, _ := strings.Cut(string(out), "\n")
	allocator, cancel := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun,
		chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))
	defer cancel()
	browser, stop := chromedp.NewContext(allocator)
	defer stop()
	if err := chromedp.Do(browser); err != nil {
		return err
	}
	var content, whole, wire []float64
	for range views {
		seen, err := b.firstView(ctx, browser, file, password, passwordHash.FindString(string(out)))
		if err != nil {
			return err
		}
		content, whole, wire = append(content, seen.Content), append(whole, seen.Whole), append(wire, seen.Bytes)
	}
	b.add(row{
		what: "first view of the dashboard, cold, in Chromium on loopback, to its content", limit: "300 ms",
		ours: fmt.Sprintf("%.0f ms (with the chart drawn %.0f)", median(content), median(whole)), ratio: fmt.Sprintf("%.2f", median(content)/300), reach: "below 1", good: median(content) < 300,
	})
	b.add(row{
		what: "bytes of that view, with header fields", limit: "150 kB",
		ours: fmt.Sprintf("%.0f kB", median(wire)/1000), ratio: fmt.Sprintf("%.2f", median(wire)/150_000), reach: "below 1", good: median(wire) < 150_000,
	})
	return nil
}

// firstSeen has the browser's timings of a view in milliseconds since the request, and
// its size in bytes.
type firstSeen struct {
	First   float64 `json:"first"`   // the first text or picture was painted
	Answer  float64 `json:"answer"`  // the response began
	Content float64 `json:"content"` // the largest text or picture was painted
	Whole   float64 `json:"whole"`   // the chart is drawn
	Bytes   float64 `json:"bytes"`
}

const firstSeenScript = `new Promise((done) => {
	const wait = () => {
		const drawn = performance.getEntriesByName("chart-drawn")[0], canvas = document.querySelector(".plot canvas");
		if (!drawn && canvas) performance.mark("chart-drawn");
		if (!drawn) { requestAnimationFrame(wait); return; }
		new PerformanceObserver((list) => {
			const largest = list.getEntries().at(-1).startTime;
			const loads = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
			done({ content: largest, first: performance.getEntriesByName("first-contentful-paint")[0].startTime, answer: performance.getEntriesByType("navigation")[0].responseStart, whole: drawn.startTime, bytes: loads.reduce((n, e) => n + e.transferSize, 0) });
		}).observe({ type: "largest-contentful-paint", buffered: true });
	};
	wait();
})`

// firstView starts a server and opens its dashboard once, in a new browser window.
func (b *bench) firstView(ctx, browser context.Context, file, password, hash string) (seen firstSeen, err error) {
	s, err := b.startServer(ctx, file, "--dashboard", "/owner", "--dashboard-password", hash)
	if err != nil {
		return seen, err
	}
	defer s.stop()
	client, err := login(ctx, s.url+"owner/login", password)
	if err != nil {
		return seen, err
	}
	u, err := url.Parse(s.url + "owner/")
	if err != nil {
		return seen, err
	}
	window, closes := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	defer closes()
	window, late := context.WithTimeout(window, 30*time.Second)
	defer late()
	if err := chromedp.Do(window, chromedp.Navigate("about:blank")); err != nil {
		return seen, err
	}
	for _, c := range client.Jar.Cookies(u) {
		p := network.SetCookieParams{Name: c.Name, Value: c.Value, URL: u.String(), Path: "/owner"}
		if _, err := chromedp.Call(window, network.SetCookie, p); err != nil {
			return seen, err
		}
	}
	if err := chromedp.Do(window, chromedp.Navigate(u.String())); err != nil {
		return seen, err
	}
	return chromedp.Run(window, chromedp.Evaluate[firstSeen](firstSeenScript, chromedp.EvalAwaitPromise))
}
