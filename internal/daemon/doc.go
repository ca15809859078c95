// Package daemon has what a long-running process needs of its operating system: signals to
// reload, messages to a service manager, and settings of the garbage collector.
package daemon
