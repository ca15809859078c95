package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// Costs implements [store.Costs] in the State of a store. It stores one value per site, and
// one value with the list of sites.
type Costs struct {
	State store.State
	Now   func(ctx context.Context) (time.Time, error)
}

func (c Costs) sites() state.JSON[[]string] {
	return state.JSON[[]string]{State: c.State, Namespace: "costs", Key: "sites"}
}

func (c Costs) of(site string) state.JSON[[]store.SiteCost] {
	return state.JSON[[]store.SiteCost]{State: c.State, Namespace: site, Key: "costs"}
}

// Add implements [store.Costs].
func (c Costs) Add(ctx context.Context, site, protocol string, t store.Traffic) error {
	if site == "" || protocol == "" || slices.ContainsFunc(t.Numbers(), func(n *int64) bool { return *n < 0 }) {
		return fmt.Errorf("traffic of %s by %s: %w: empty name or negative number", site, protocol, millrace.ErrInvalid)
	}
	err := c.sites().Update(ctx, func(sites *[]string) error {
		if !slices.Contains(*sites, site) {
			*sites = append(*sites, site)
		}
		return nil
	})
	if err != nil {
		return err
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

// List implements [store.Costs].
func (c Costs) List(ctx context.Context) ([]store.SiteCost, error) {
	sites, err := c.sites().Load(ctx)
	if err != nil {
		return nil, err
	}
	var all []store.SiteCost
	for _, site := range sites {
		costs, err := c.of(site).Load(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, costs...)
	}
	slices.SortFunc(all, func(a, b store.SiteCost) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Protocol, b.Protocol))
	})
	return all, nil
}
