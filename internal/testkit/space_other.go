//go:build !linux

package testkit

func freeSpace(string) uint64 { return 0 }
