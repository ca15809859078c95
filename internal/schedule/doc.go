// Package schedule decides when a site is looked at again. It is pure: whoever
// uses it has the clock, and keeps the [State] of each site where it outlives
// the process.
//
// The time between two looks is learned, from an hour on. A look that finds
// something new halves it, one that finds nothing makes it half as long again, between two bounds. So
// a site that changes daily is soon looked at a few times a day, and one that
// has died down once a day.
//
// Somebody may say meanwhile that a site has changed: [State.Hint] says when
// that is worth a look. What such a look finds says nothing about the looks by
// schedule. Hints that come to nothing are believed ever less.
package schedule
