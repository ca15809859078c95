// Package terminal writes text of any origin so that it cannot control a terminal, shows
// the progress of long steps, and fits text to the width of a terminal.
package terminal
