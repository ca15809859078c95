// Package access decides which requests are answered: by keys, by how much a client
// has asked for, and by rules for bots. A [Guard] decides for all requests of a
// server; a [Request] is one of them, and also records what its response turned out
// to be, for events and metrics.
package access
