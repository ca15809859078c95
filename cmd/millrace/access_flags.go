package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/store"
)

// accessFlags holds the flags for keys and rate limits.
type accessFlags struct {
	RequireKey      bool     `help:"Require a key for the content of every protocol (see millrace help keys). This disables SCP, which does not support keys."`
	PublicProtocols []string `type:"names" placeholder:"PROTOCOL,..." help:"With --require-key: protocols whose content stays public."`
	Rate            float64  `placeholder:"N" help:"Maximum content requests per second from one key or address; bursts may be twice as large (default: no limit)."`
	Proxies         []string `placeholder:"ADDRESS" help:"Addresses or networks of trusted proxies, whose X-Forwarded-For is used (default: none)."`
	trusted         []netip.Prefix

	botRuleFlags
}

// decodeNames decodes a list of names. An empty value, such as that of an unset variable in a
// script, becomes a list with one empty name, not an empty list, so validation rejects it.
func decodeNames(ctx *kong.DecodeContext, target reflect.Value) error {
	var value any
	if err := ctx.Scan.PopValueInto("name", &value); err != nil {
		return err
	}
	names := target.Interface().([]string)
	switch v := value.(type) {
	case string:
		names = append(names, strings.Split(v, ",")...)
	case []any: // a list from the configuration
		for _, name := range v {
			names = append(names, fmt.Sprint(name))
		}
	}
	target.Set(reflect.ValueOf(names))
	return nil
}

// validate rejects invalid values, because a misunderstood value could make private content
// public.
func (c *accessFlags) validate() error {
	if !(c.Rate >= 0) || math.IsInf(c.Rate, 0) || c.Rate > 0 && c.Rate < 0.001 {
		return usageError(fmt.Sprintf("--rate %v: must be 0 or at least 0.001 requests per second, such as 10; omit it for no limit", c.Rate))
	}
	if len(c.PublicProtocols) > 0 && !c.RequireKey {
		return usageError("--public-protocols: only valid with --require-key; without it, every protocol is public")
	}
	for _, name := range c.PublicProtocols {
		if name == "mcp" {
			continue
		}
		if name == "" {
			return usageError(`--public-protocols: "" is not a protocol; omit the flag to require a key for all protocols`)
		}
		if _, err := protocols(name); err != nil {
			return usageError("--public-protocols: " + err.Error())
		}
	}
	var err error
	c.trusted, err = access.ParseNetworks(c.Proxies)
	return errors.Join(inFlag("--proxies", err), c.botRuleFlags.validate())
}

// needsKey reports whether the content of a protocol needs a key. Without RequireKey, all
// protocols are public.
func (c *accessFlags) needsKey(name string) bool {
	return c != nil && c.RequireKey && !slices.Contains(c.PublicProtocols, name)
}

// apply sets the options of the gateway for keys and limits.
func (c *accessFlags) apply(ctx context.Context, p *process, keys store.Keys, o *gateway.Options) error {
	o.Access.Keys, o.Access.Rate, o.Access.Proxies = keys, c.Rate, c.trusted
	if err := c.keep(p, o); err != nil || !c.RequireKey {
		return err
	}
	all, err := keys.List(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	if !slices.ContainsFunc(all, func(k store.Key) bool { return k.ValidAt(now) && k.HasScope(millrace.ScopeRead) }) {
		p.log.Warn("no key has the scope read; create one with millrace keys add NAME, for the same source or --store")
	}
	return nil
}

// checkPolicy rejects a policy whose rate is above the limit of the server.
func (c *accessFlags) checkPolicy(p *millrace.Policy) error {
	if p == nil || c.Rate == 0 || p.Rate.PerSecond <= c.Rate {
		return nil
	}
	return usageError(fmt.Sprintf("policy.rate.per-second %v: the policy allows clients more requests than --rate %v", p.Rate.PerSecond, c.Rate))
}
