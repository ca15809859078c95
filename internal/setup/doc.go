// Package setup probes a site, and writes a configuration for it.
package setup
