package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows how far a long step has come: a bar on a terminal, a log
// line every few seconds otherwise. A step of less than a second shows
// nothing.
type progress struct {
	p     *process
	title string
	start time.Time

	mu          sync.Mutex
	unit        string        // of done and total
	bars        *mpb.Progress // nil: no terminal, or not a second yet
	bar         *mpb.Bar
	logged      time.Time
	done, total int
	stop        chan struct{} // closed at the end
}

const (
	progressAfter = time.Second
	progressEvery = 5 * time.Second
)

func (p *process) progress(title string) *progress {
	now := time.Now()
	g := &progress{p: p, title: title, unit: "pages", start: now, logged: now, stop: make(chan struct{})}
	go func() { // what hangs is seen too
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

// of says what is counted, if it is not pages.
func (g *progress) of(unit string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unit = unit
}

// show says that done of total are done. The total may grow.
func (g *progress) show(done, total int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done, g.total = done, total
	g.draw()
}

// draw shows the state, if it is time; the caller has locked it.
func (g *progress) draw() {
	select {
	case <-g.stop:
		return
	default:
	}
	if g.p.common.Quiet || time.Since(g.start) < progressAfter {
		return
	}
	done, total := g.done, g.total
	if !isTerminal(g.p.stderr, g.p.lookup) {
		if time.Since(g.logged) >= progressEvery {
			g.logged = time.Now()
			rate := float64(done) / time.Since(g.start).Seconds()
			g.p.log.Info(g.title, "done", done, "of", total, g.unit+"_per_second", int(rate))
		}
		return
	}
	if g.bars == nil {
		g.bars = mpb.New(mpb.WithOutput(g.p.stderr), mpb.WithWidth(60), mpb.WithAutoRefresh())
		g.bar = g.bars.AddBar(0,
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(g.title+" "), decor.CountersNoUnit("%d / %d")),
			mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f "+g.unit+"/s")),
		)
		g.bar.DecoratorAverageAdjust(g.start)
	}
	g.bar.SetTotal(int64(max(total, done+1)), false)
	g.bar.SetCurrent(int64(done))
}

// end takes the bar away.
func (g *progress) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.stop)
	if g.bars != nil {
		g.bar.Abort(true)
		g.bars.Wait()
		g.bars = nil
	}
}

// isTerminal reports whether a person may be looking.
func isTerminal(w io.Writer, lookup func(string) (string, bool)) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	term, _ := lookup("TERM")
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && term != "" && term != "dumb"
}
