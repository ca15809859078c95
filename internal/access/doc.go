// Package access decides which requests are allowed: by keys, rate limits, and
// rules for bots. A [Guard] is for all requests of a server. A [Request] is one of
// them and records its response, for events and metrics.
package access
