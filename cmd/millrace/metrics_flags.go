package main

import (
	"net/netip"
	"slices"

	"github.com/millrace/millrace/internal/access"
)

// metricsFlags holds the flags for metrics.
type metricsFlags struct {
	Metrics []string `type:"names" placeholder:"NETWORK,..." help:"Addresses or networks that may also read the Prometheus metrics at /metrics; off disables them (default: this machine and private networks). Behind a proxy, also set --proxies."`
	readers []netip.Prefix
}

// validate parses the networks.
func (c *metricsFlags) validate() (err error) {
	switch {
	case !c.metered():
	case slices.Contains(c.Metrics, "off"):
		return usageError("--metrics: off cannot be combined with other values")
	default:
		c.readers, err = access.ParseNetworks(c.Metrics)
	}
	return inFlag("--metrics", err)
}

// metered reports whether metrics are enabled.
func (c *metricsFlags) metered() bool { return len(c.Metrics) != 1 || c.Metrics[0] != "off" }
