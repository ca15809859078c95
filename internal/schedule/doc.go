// Package schedule decides when a site is scanned again. It has no clock and no storage: the
// caller passes the time, and stores the [State] of each site.
//
// The interval between two scans is learned and starts at one hour. A scan that finds changes
// halves the interval, and a scan that finds none increases it by half, between two bounds. As a
// result, a site that changes daily is soon scanned a few times a day, and an inactive site once a
// day.
//
// Other sources may report a change before the next scan is due. After such a hint, a scan is
// allowed when the time of [State.Hint] has passed. A hinted scan does not change the interval. If
// it finds no change, the delay of the next hinted scan doubles.
package schedule
