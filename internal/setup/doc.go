// Package setup probes a site for its configuration, and writes that configuration.
package setup
