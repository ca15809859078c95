package main

import (
	"runtime/debug"

	"github.com/millrace/millrace/internal/access"
)

// memoryLimit is the soft limit of the Go heap in bytes: the cache of bodies, the memory of a
// few requests, and the same amount of garbage. It does not include the caches of the store.
const memoryLimit = 98 << 20

// lazily is the value of GOGC while the heap is far below the limit.
const lazily = 400

// eagerly is the value of GOGC where the memory matters more than the time.
const eagerly = 50

// limitMemory makes the garbage collector run rarely far from the limit, and often near it.
// GOGC and GOMEMLIMIT of the environment take precedence.
func (p *process) limitMemory() {
	if p.limited() {
		return
	}
	debug.SetGCPercent(lazily)
	debug.SetMemoryLimit(memoryLimit)
}

// saveMemory makes the garbage collector run often, for work whose memory is bounded and whose
// garbage is not.
func (p *process) saveMemory() {
	if !p.limited() {
		debug.SetGCPercent(eagerly)
	}
}

// limited reports whether the environment configures the garbage collector.
func (p *process) limited() bool {
	_, percent := p.lookup("GOGC")
	_, limit := p.lookup("GOMEMLIMIT")
	return percent || limit
}

// listening returns a function that gets the number of open streams. With many of them, the
// garbage collector should run more often.
func (p *process) listening() func(open int) {
	if p.limited() {
		return nil
	}
	return access.Collect(lazily)
}
