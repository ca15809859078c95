// Package lock keeps programs apart that write to one folder. What they hold is
// a file, and the system lets go of it for a program that is killed.
package lock

import "errors"

// ErrHeld says that somebody else has the lock.
var ErrHeld = errors.New("locked")
