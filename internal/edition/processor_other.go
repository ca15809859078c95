//go:build !linux

package edition

import "time"

// processorTime calls f and returns how long it took: this system does not say
// what a goroutine has used of a processor.
func processorTime(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
