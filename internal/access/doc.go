// Package access decides which requests are allowed, by keys, rate limits, and rules for bots. A
// server has one [Guard]. A [Request] represents one request, and records its response for events
// and metrics.
package access
