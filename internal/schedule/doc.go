// Package schedule decides when a site is scanned again. It is pure: the caller
// has the clock and stores the [State] of each site.
//
// The interval between two scans is learned and starts at one hour. A scan that
// finds changes halves it, one that finds none adds half of it, between two bounds.
// So a site that changes daily is soon scanned a few times a day, and an inactive
// site once a day.
//
// Others may report a change in between: [State.Hint] says when that justifies a
// scan. Such a scan does not change the interval. Each hint without a change
// doubles the delay of the next hinted scan.
package schedule
