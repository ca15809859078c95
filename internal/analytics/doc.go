// Package analytics records the requests of machines, summarizes them and exports them.
//
//   - A [Recorder] gets one event per response and stores events in batches, in the background, so
//     that no request waits. It drops and counts events that it cannot store.
//   - [Sum] compares the bytes of the responses with the HTML of the same pages. [Saved] defines
//     the comparison.
//   - [FindUnusual] finds unusual traffic, and names the flag that limits it.
//   - An [Exporter] sends the events to another analytics service.
package analytics
