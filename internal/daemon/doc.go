// Package daemon connects a long-running process to its operating system and the Go runtime:
// signals to reload, messages to a service manager, and settings of the garbage collector.
package daemon
