//go:build unix

package edition

import (
	"syscall"
	"time"
)

// processorTime calls f and returns the processor time that this process used meanwhile. The result
// includes the time for requests, because the processor time of a goroutine could only be measured
// by locking the goroutine to a thread. On a busy machine, such a goroutine waits for its thread
// whenever it continues.
func processorTime(f func()) time.Duration {
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			return 0
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := spent()
	f()
	return spent() - before
}
