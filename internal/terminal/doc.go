// Package terminal writes untrusted text so that it cannot control a terminal. It also shows the
// progress of long steps, and wraps text to the width of a terminal.
package terminal
