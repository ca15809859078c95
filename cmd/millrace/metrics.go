package main

import (
	"net/netip"

	"github.com/millrace/millrace/internal/gateway"
)

// metering holds the flags for metrics.
type metering struct {
	Metrics []string `type:"names" placeholder:"NETWORK,..." help:"Addresses or networks that may also read the Prometheus metrics at /metrics; off disables them (default: this machine and private networks). Behind a proxy, also set --proxies."`
}

// validate rejects invalid values.
func (c *metering) validate() error {
	_, _, err := c.readers()
	return err
}

// readers parses the flag. off reports whether metrics are off.
func (c *metering) readers() (from []netip.Prefix, off bool, err error) {
	for _, s := range c.Metrics {
		if s == "off" {
			if len(c.Metrics) > 1 {
				return nil, true, usageError("--metrics: off excludes all other values")
			}
			return nil, true, nil
		}
		p, err := network("metrics", s, "all clients could read the metrics")
		if err != nil {
			return nil, false, err
		}
		from = append(from, p)
	}
	return from, false, nil
}

// meter adds metrics to a gateway.
func (s *service) meter(g *gateway.Options) error {
	from, off, err := s.c.readers()
	if !off {
		g.Metrics, g.MetricsOptions.From = s.metrics, from
	}
	return err
}
