package main

import (
	"net/netip"

	"github.com/millrace/millrace/internal/gateway"
)

// metering are the flags that say who may read what is counted.
type metering struct {
	Metrics []string `type:"names" placeholder:"NETWORK,..." help:"Addresses or networks that may also read the Prometheus metrics at /metrics; off disables them (default: this machine and private networks). Behind a proxy, also set --proxies."`
}

// validate refuses values that would be taken for something else.
func (c *metering) validate() error {
	_, _, err := c.readers()
	return err
}

// readers reads the flag; off says that nobody may read anything.
func (c *metering) readers() (from []netip.Prefix, off bool, err error) {
	for _, s := range c.Metrics {
		if s == "off" {
			if len(c.Metrics) > 1 {
				return nil, true, usageError("--metrics: off goes with nothing else")
			}
			return nil, true, nil
		}
		p, err := network("metrics", s, "everybody could read them")
		if err != nil {
			return nil, false, err
		}
		from = append(from, p)
	}
	return from, false, nil
}

// meter has a gateway count what it does.
func (s *service) meter(g *gateway.Options) error {
	from, off, err := s.c.readers()
	if !off {
		g.Metrics, g.MetricsOptions.From = s.metrics, from
	}
	return err
}
