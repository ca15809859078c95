//go:build !linux

package postgres

import "syscall"

// limitUnacknowledged does nothing: the kernel limits the time for which it retransmits packets.
func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }
