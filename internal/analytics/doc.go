// Package analytics is about what machines ask a site for: it takes down what
// they were answered, says what that comes to, and hands it on.
//
//   - A [Recorder] is given one event per answer and stores them, in batches and
//     by itself, so that no request waits for it. What it cannot keep it drops and
//     counts.
//   - [Sum] tells what the answers have saved against the HTML of the same pages:
//     see [Saved] for the yardstick.
//   - [FindUnusual] tells who reads the site in a way that its owner may want to
//     know of, and which flag would change it.
//   - An [Exporter] hands the events on to somebody else's analytics.
package analytics
