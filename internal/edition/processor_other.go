//go:build !unix

package edition

import "time"

// processorTime calls f and returns its duration, because this system does not report the
// processor time of the process.
func processorTime(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
