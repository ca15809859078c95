package daemon

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	loadEvery   = 5 * time.Second // time between two reads of the load
	moreThreads = 8               // threads that run Go code on an overloaded machine
)

// Threads lets more threads run Go code while other programs keep the processors busy. The kernel
// divides the processors among all threads, so a server with only as many threads as processors
// gets a small share, and edits become visible late. Threads returns when ctx ends. It returns at
// once if env contains GOMAXPROCS, if a container limits the processors, if there are many, or if
// the system has no /proc/loadavg.
func Threads(ctx context.Context, env func(name string) (string, bool)) {
	normal := runtime.GOMAXPROCS(0)
	if _, given := env("GOMAXPROCS"); given || normal != runtime.NumCPU() || normal >= moreThreads {
		return
	}
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	for {
		text, err := os.ReadFile("/proc/loadavg")
		if err != nil {
			return
		}
		if now := runtime.GOMAXPROCS(0); threads(string(text), normal, now) != now {
			if now == normal {
				runtime.GOMAXPROCS(moreThreads)
			} else {
				runtime.SetDefaultGOMAXPROCS()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// threads returns the number of threads for a load, in the format of /proc/loadavg. It is
// moreThreads from a load of four threads per processor, and normal below two. In between, it is
// now, the present number.
func threads(loadavg string, normal, now int) int {
	minute, _, _ := strings.Cut(loadavg, " ")
	load, err := strconv.ParseFloat(minute, 64)
	switch {
	case err != nil, load < float64(2*normal):
		return normal
	case load >= float64(4*normal):
		return moreThreads
	}
	return now
}
