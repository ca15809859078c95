// Package schedule decides when a site is scanned again. It has no clock and no storage: the caller
// passes the time and stores the [State] of each site.
//
// The interval between two scans is learned and starts at one hour. A scan that finds changes
// halves the interval, and a scan that finds none increases it by half, between two bounds. Thus a
// site that changes daily is soon scanned a few times a day, and an inactive site once a day.
//
// Other sources may report a change before the next scan is due. [State.Hint] returns the time
// until such a hint permits a scan. Such a scan does not change the interval. Each hint without a
// change doubles the delay of the next hinted scan.
package schedule
