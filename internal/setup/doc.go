// Package setup finds out about a site what a configuration of it needs, and writes
// that configuration.
package setup
