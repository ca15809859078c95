package main

import (
	"sync"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/terminal"
)

// progress starts a progress bar.
func (p *process) progress(title string) *terminal.Step {
	return p.board.Step(title, terminal.Options{Writer: p.stderr, Quiet: p.commonFlags.Quiet, Logger: p.log})
}

// steps returns a function that shows steps one after the other. An empty title ends the previous
// step.
func (p *process) steps() func(title, unit string, done, total int) {
	var bar *terminal.Step
	at := ""
	return func(title, unit string, done, total int) {
		if title != at {
			if at != "" {
				bar.End()
			}
			if at = title; title != "" {
				bar = p.progress(title)
				bar.Count(unit)
			}
		}
		if at != "" {
			bar.Show(done, total)
		}
	}
}

// refreshing returns a function that shows the progress of a step, counted in unit. The step may
// run several times, or never. A total of 0 ends it.
func (p *process) refreshing(title, unit string) func(done, total int) {
	show := p.steps()
	return func(done, total int) {
		if total > 0 {
			show(title, unit, done, total)
		} else {
			show("", "", 0, 0)
		}
	}
}

// pulls returns a function that shows the progress of pulls.
func (p *process) pulls() func(agent.Progress) {
	var mu sync.Mutex
	bars := map[[2]string]*terminal.Step{}
	return func(g agent.Progress) {
		mu.Lock()
		defer mu.Unlock()
		id := [2]string{g.Site, g.Via}
		bar, ok := bars[id]
		if !ok {
			title := "pulling " + g.Site
			if g.Via == webCrawl {
				title = "crawling " + g.Site
			}
			bar = p.progress(title)
			bar.Expect(g.Expected, g.Received)
			if g.Via != webCrawl && g.Expected == 0 {
				bar.Endless() // the total is unknown
			}
			bars[id] = bar
		}
		if g.Ended {
			bar.End()
			delete(bars, id)
			return
		}
		bar.Show(g.Done, g.Found)
	}
}
