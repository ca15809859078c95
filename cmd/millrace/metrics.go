package main

import (
	"context"
	"net/netip"
	"time"

	"github.com/millrace/millrace/internal/gateway"
)

// metering are the flags that say who may read what is counted.
type metering struct {
	Metrics []string `type:"names" placeholder:"NETWORK,..." help:"Who may read /metrics, for Prometheus, beside this machine and private networks: addresses or networks; off = nobody. Through a proxy, name it under --proxies (default: this machine and private networks)."`
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

// meter has a gateway count what it does. was are the metrics of the service
// before, which go on; nil = there was none.
func (s *service) meter(o *gateway.Options, was *gateway.Metrics) error {
	from, off, err := s.c.readers()
	if err != nil || off {
		return err
	}
	if s.metrics = was; was == nil {
		s.metrics = gateway.NewMetrics()
	}
	o.Metrics = s.metrics
	o.MetricsOptions = gateway.MetricsOptions{From: from, Looked: s.source.lookedAt, Behind: s.behind}
	if s.events != nil {
		o.MetricsOptions.Dropped = s.events.Dropped
	}
	return nil
}

// lookedAt says when the source was looked at last, and whether that failed.
func (o *source) lookedAt() (at time.Time, failed bool) {
	if l := o.Last(); l != nil {
		at = l.Time
	}
	if f := o.Failure(); f != nil {
		return f.Time, true
	}
	return at, false
}

// behind says how far those are behind who are told of events.
func (s *service) behind() []gateway.Behind {
	var out []gateway.Behind
	for _, lag := range s.lags(context.Background()) {
		b := gateway.Behind{Name: lag.Exporter, Events: lag.Events}
		if !lag.Since.IsZero() {
			b.Age = time.Since(lag.Since)
		}
		out = append(out, b)
	}
	return out
}
