// Package analytics is about what machines ask a site for: it takes down what
// they were answered, and says what that comes to.
//
// A [Recorder] is given one event per answer and hands them on to a store, in
// batches and by itself, so that no request waits for it. What it cannot keep it
// drops and counts.
package analytics
