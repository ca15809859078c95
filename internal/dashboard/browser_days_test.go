package dashboard

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/millrace/millrace/store"
)

// A chart of days has a label for each day, beginning with the first, even if there is only one
// day.
func TestRealBrowserDays(t *testing.T) {
	t.Parallel()
	open := chromium(t)
	for name, c := range map[string]struct {
		days int
		want string
	}{
		"one":   {1, "20 Nov"},
		"three": {3, "18 Nov,19 Nov,20 Nov"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHandbook(t, "https://handbook.test/", false)
			h.Usage = h.store
			for day := range c.days {
				e := store.Event{Time: seedTime.AddDate(0, 0, -day), Bot: "GPTBot", Protocol: "html", Endpoint: store.EndpointFetch, Status: 200, Bytes: 70_000, HTML: 50_000, Received: 10_000, Results: 1, Took: time.Millisecond}
				if err := h.Usage.Record(t.Context(), h.Name, []store.Event{e, e, e}); err != nil {
					t.Fatal(err)
				}
			}
			b := newBoard(t, h.SiteOptions, seedTime)
			for _, v := range views[1:3] {
				w := open(t, v.width, v.theme)
				// The labels are drawn on a canvas, so record the drawing calls.
				w.logIn(b)
				w.do(chromedp.WaitVisible(chromedp.CSS(".plot canvas")))
				w.eval(`(() => {
					const fill = CanvasRenderingContext2D.prototype.fillText;
					window.seen = [];
					CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { seen.push(text); return fill.call(this, text, ...rest); };
					return "";
				})()`)
				w.setView(v.width-20, v.theme) // draws again
				drawn, err := chromedp.Run(w.ctx, chromedp.Poll[string](`seen.filter((s) => / Nov|:/.test(s)).join(",")`))
				if err != nil {
					t.Fatal(err)
				}
				w.shoot("days-" + name + "-" + v.name)
				if drawn != c.want {
					t.Errorf("%s: labels %q, want %q", v.name, drawn, c.want)
				}
			}
		})
	}
}
