package main

import (
	"runtime/debug"

	"github.com/millrace/millrace/internal/access"
)

// memoryLimit is what the heap and its administration stay within as long as
// they can: the cache of bodies, what a few requests need, and as much again
// for garbage. The store's own caches come on top of it.
const memoryLimit = 98 << 20

// lazily is GOGC far from the limit.
const lazily = 400

// limitMemory makes the collector lazy far from the limit, where memory costs
// nothing, and eager near it. GOGC and GOMEMLIMIT in the environment win.
func (p *process) limitMemory() {
	if p.limited() {
		return
	}
	debug.SetGCPercent(lazily)
	debug.SetMemoryLimit(memoryLimit)
}

// limited reports whether the environment says how the collector works.
func (p *process) limited() bool {
	_, percent := p.lookup("GOGC")
	_, limit := p.lookup("GOMEMLIMIT")
	return percent || limit
}

// listening gives what a gateway tells of those who listen: many of them are
// worth an eager collector.
func (p *process) listening() func(open int) {
	if p.limited() {
		return nil
	}
	return access.Collect(lazily)
}
