package record

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// Costs implements [store.Costs] in the State of a store. It stores one value per site.
type Costs struct {
	State store.State
	Now   func(ctx context.Context) (time.Time, error)
}

const costsKey = "costs"

func (c Costs) of(site string) state.JSON[[]store.SiteCost] {
	return state.JSON[[]store.SiteCost]{State: c.State, Namespace: site, Key: costsKey}
}

// Add implements [store.Costs].
func (c Costs) Add(ctx context.Context, site, protocol string, t store.Traffic) error {
	if site == "" || protocol == "" || slices.ContainsFunc(t.Numbers(), func(n *int64) bool { return *n < 0 }) {
		return fmt.Errorf("traffic of %s via %s: %w: empty name or negative number", site, protocol, millrace.ErrInvalid)
	}
	now, err := c.Now(ctx)
	if err != nil {
		return err
	}
	now = now.Truncate(time.Second)
	return c.of(site).Update(ctx, func(all *[]store.SiteCost) error {
		i := slices.IndexFunc(*all, func(o store.SiteCost) bool { return o.Protocol == protocol })
		if i < 0 {
			i = len(*all)
			*all = append(*all, store.SiteCost{Site: site, Protocol: protocol, Since: now})
		}
		(*all)[i].Last = now
		(*all)[i].Traffic.Add(t)
		return nil
	})
}

// Of implements [store.Costs].
func (c Costs) Of(ctx context.Context, site string) ([]store.SiteCost, error) {
	all, err := c.of(site).Load(ctx)
	slices.SortFunc(all, func(a, b store.SiteCost) int { return strings.Compare(a.Protocol, b.Protocol) })
	return all, err
}

// List implements [store.Costs].
func (c Costs) List(ctx context.Context) (all []store.SiteCost, err error) {
	for site, err := range c.State.Namespaces(ctx, costsKey) {
		if err != nil {
			return nil, err
		}
		costs, err := c.Of(ctx, site)
		if err != nil {
			return nil, err
		}
		all = append(all, costs...)
	}
	return all, nil
}
