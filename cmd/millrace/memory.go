package main

import "runtime/debug"

// memoryLimit is what the heap and its administration stay within as long as
// they can: the cache of bodies, what a few requests need, and as much again
// for garbage. The store's own caches come on top of it.
const memoryLimit = 104 << 20

// limitMemory makes the collector lazy far from the limit, where memory costs
// nothing, and eager near it. GOGC and GOMEMLIMIT in the environment win.
func (p *process) limitMemory() {
	if _, set := p.lookup("GOGC"); set {
		return
	}
	if _, set := p.lookup("GOMEMLIMIT"); set {
		return
	}
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(memoryLimit)
}
