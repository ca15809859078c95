// Package terminal shows the progress of long steps, and fits text to the width of a
// terminal.
package terminal
