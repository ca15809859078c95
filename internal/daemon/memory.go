package daemon

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// softLimit is the soft limit of the Go heap in bytes. It covers the cache of bodies, the memory
// of a few requests, and the same amount of garbage, but not the caches of the store. If more is
// in use, the limit rises.
const softLimit = 98 << 20

// Values of GOGC.
const (
	lazy   = 400 // while the heap is far below the limit
	eager  = 100 // while many streams are open
	saving = 50  // for work that should use little memory, even if it takes longer
)

// Numbers of streams at which the garbage collector becomes eager, and lazy again. Each stream
// allocates about 25 kB, and a lazy collector would accumulate several times as much.
const (
	manyStreams  = 256
	fewerStreams = 128
)

// Memory configures the garbage collector, unless the environment sets GOGC or GOMEMLIMIT.
type Memory struct {
	Env func(name string) (string, bool)
}

// Limit makes the garbage collector run rarely while the heap is far below the limit, and often
// near it.
func (m Memory) Limit() {
	if !m.given() {
		debug.SetGCPercent(lazy)
		debug.SetMemoryLimit(softLimit)
		raiseLimit(struct{}{})
	}
}

// raiseLimit leaves space for garbage: a quarter of the memory in use. With less space, the
// collector would take up to half of the processor time. It runs after each collection, as the
// cleanup of an object that nothing refers to.
func raiseLimit(struct{}) {
	used := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(used)
	at := func(i int) int64 { return int64(used[i].Value.Uint64()) }
	live, others := at(0), at(1)-at(2)-at(3)-at(4)
	debug.SetMemoryLimit(max(softLimit, others+live+live/4))
	runtime.AddCleanup(new(*int), raiseLimit, struct{}{})
}

// SaveMemory makes the garbage collector run often, for work that needs little memory but produces
// much garbage.
func (m Memory) SaveMemory() {
	if !m.given() {
		debug.SetGCPercent(saving)
	}
}

// Streams returns a function that receives the number of open streams, and makes the garbage
// collector eager while there are many. Calls must not overlap. It returns nil if the environment
// configures the collector.
func (m Memory) Streams() func(open int) {
	if m.given() {
		return nil
	}
	many := false
	return func(open int) {
		switch {
		case !many && open >= manyStreams:
			many = true
			debug.SetGCPercent(eager)
		case many && open < fewerStreams:
			many = false
			debug.SetGCPercent(lazy)
		}
	}
}

// given reports whether the environment configures the garbage collector.
func (m Memory) given() bool {
	_, percent := m.Env("GOGC")
	_, limit := m.Env("GOMEMLIMIT")
	return percent || limit
}
