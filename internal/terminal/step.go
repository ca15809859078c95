package terminal

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/humanize"
)

// Step shows the progress of a long step: a bar on a terminal, otherwise a log line
// every few seconds. A step of less than a second shows nothing. Several steps may be
// shown at once.
type Step struct {
	b     *Screen
	o     Options
	title string
	start time.Time

	mu          sync.Mutex
	unit        string       // unit of done and total
	received    func() int64 // returns the bytes received so far. If nil, they are not counted.
	expected    int          // minimum of the expected total
	open        bool         // the total may still grow
	bar         *mpb.Bar     // nil without a terminal, and in the first second of the step
	logged      time.Time
	done, total int
	stop        chan struct{} // closed at the end

	suffix atomic.Pointer[string] // text after the bar, which must not wait for mu
}

const (
	progressAfter = time.Second
	progressEvery = 5 * time.Second
)

// Screen holds the steps that are shown at one time. The zero value is empty.
type Screen struct {
	mu   sync.Mutex
	bars *mpb.Progress // nil if no bar is shown
	n    int
}

// add shows another bar.
func (b *Screen) add(w io.Writer, o ...mpb.BarOption) *mpb.Bar {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bars == nil {
		b.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(24), mpb.WithAutoRefresh())
	}
	b.n++
	return b.bars.AddBar(0, o...)
}

// remove removes a bar.
func (b *Screen) remove(bar *mpb.Bar) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bar.Abort(true)
	if b.n--; b.n == 0 {
		b.bars.Wait()
		b.bars = nil
	}
}

// Options configure where a step is shown.
type Options struct {
	Writer *Writer // shows a bar if it is a terminal
	Quiet  bool    // nothing is shown
	Logger *slog.Logger
}

// Step starts to show a step.
func (b *Screen) Step(title string, o Options) *Step {
	now := time.Now()
	g := &Step{b: b, o: o, title: title, unit: "pages", start: now, logged: now, stop: make(chan struct{})}
	go func() { // also shows a step that makes no progress
		tick := time.NewTicker(progressAfter)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				g.mu.Lock()
				g.draw()
				g.mu.Unlock()
			case <-g.stop:
				return
			}
		}
	}()
	return g
}

// Count sets the unit. The default is pages.
func (g *Step) Count(unit string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unit = unit
}

// Expect sets the known minimum of the total, and the function that returns the
// received bytes.
func (g *Step) Expect(total int, received func() int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expected, g.received = total, received
}

// Endless declares that the total grows until the end, so the time left cannot be estimated.
func (g *Step) Endless() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
}

// Show sets the progress. The total may grow.
func (g *Step) Show(done, total int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done, g.total = done, total
	g.draw()
}

// draw shows the state if enough time has passed. The caller holds the lock.
func (g *Step) draw() {
	select {
	case <-g.stop:
		return
	default:
	}
	if g.o.Quiet || time.Since(g.start) < progressAfter {
		return
	}
	if !g.o.Writer.Terminal {
		if time.Since(g.logged) >= progressEvery {
			g.logged = time.Now()
			g.o.Logger.LogAttrs(context.Background(), slog.LevelInfo, "in progress", g.attrs(time.Since(g.start))...)
		}
		return
	}
	text := g.text(time.Since(g.start))
	g.suffix.Store(&text)
	if g.bar == nil {
		g.bar = g.b.add(g.o.Writer.to,
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(canon.OneLine(g.title)+" ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *g.suffix.Load() })),
		)
	}
	g.bar.SetTotal(int64(max(g.total, g.expected, g.done+1)), false)
	g.bar.SetCurrent(int64(g.done))
}

// rate returns the units done per second, and the time left, or 0 if unknown.
func (g *Step) rate(elapsed time.Duration) (perSecond float64, left time.Duration) {
	if perSecond = float64(g.done) / elapsed.Seconds(); g.done > 0 && !g.open {
		left = time.Duration(float64(max(g.total, g.expected)-g.done) / perSecond * float64(time.Second)).Round(time.Second)
	}
	return perSecond, max(0, left)
}

// attrs describes the state for a log.
func (g *Step) attrs(elapsed time.Duration) []slog.Attr {
	perSecond, left := g.rate(elapsed)
	out := []slog.Attr{
		slog.String("step", g.title), slog.String("unit", g.unit), slog.Int("done", g.done),
		slog.Int("total", max(g.total, g.expected)), slog.Int("per_second", int(perSecond)),
	}
	if g.received != nil {
		out = append(out, slog.Int64("bytes", g.received()))
	}
	if left > 0 {
		out = append(out, slog.Duration("left", left))
	}
	return out
}

// text describes the state after a bar, such as "120 / 900 pages, 3.4 MB, 24 pages/s,
// 33s left".
func (g *Step) text(elapsed time.Duration) string {
	perSecond, left := g.rate(elapsed)
	s := fmt.Sprintf("%d / %d %s", g.done, max(g.total, g.expected), g.unit)
	if g.received != nil {
		s += ", " + humanize.Bytes(g.received())
	}
	s += fmt.Sprintf(", %.0f %s/s", perSecond, g.unit)
	if left > 0 {
		s += ", " + left.String() + " left"
	}
	return s
}

// End removes the bar.
func (g *Step) End() {
	g.mu.Lock()
	close(g.stop)
	bar := g.bar
	g.bar = nil
	g.mu.Unlock()
	if bar != nil {
		g.b.remove(bar)
	}
}
