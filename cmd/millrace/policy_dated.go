package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// policyRecord is what the State of a store has of the policy that it is published
// with.
type policyRecord struct {
	Print   string    `json:"print"`   // of the block; "" = there is none any more
	Updated time.Time `json:"updated"` // when it became so
}

// policyPrint moves with everything that a block of the configuration says.
func policyPrint(p *millrace.Policy) string {
	if p == nil {
		return ""
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic("millrace: a policy that is valid does not encode: " + err.Error())
	}
	return canon.SHA256Hex(b)[:16]
}

// dated gives the policy of the configuration as it is published: with the
// time when it was last changed, unless it says that itself. The site remembers
// it, so that all who publish the site say the same.
func (p *process) dated(ctx context.Context, st store.State, site string) (*millrace.Policy, error) {
	record := state.JSON[policyRecord]{State: st, Namespace: site, Key: "published policy"}
	updated, is := time.Time{}, policyPrint(p.policy)
	err := record.Update(ctx, func(r *policyRecord) error {
		if r.Print != is {
			was := r.Updated
			// Later than before, whatever the clock does: readers go by it.
			if r.Updated = time.Now().UTC().Truncate(time.Second); !r.Updated.After(was) {
				r.Updated = was.Add(time.Second)
			}
			if p.policy != nil && !p.policy.Updated.IsZero() {
				if !p.policy.Updated.After(was) {
					p.log.Warn("the policy has changed, and says that it has not: change its key updated, or leave it out",
						"updated", p.policy.Updated.Format(time.RFC3339), "changed before", was.Format(time.RFC3339))
				}
				r.Updated = p.policy.Updated
			}
			r.Print = is
		}
		updated = r.Updated
		return nil
	})
	if err != nil || p.policy == nil {
		return nil, err
	}
	out := *p.policy
	out.Updated = updated
	return &out, nil
}

// agree refuses a policy that allows what the server does not.
func (c *doors) agree(p *millrace.Policy) error {
	if p == nil || c.Rate == 0 || p.Rate.PerSecond <= c.Rate {
		return nil
	}
	return usageError(fmt.Sprintf("policy.rate.per-second %v: clients would be told that they may ask more often than --rate %v lets them", p.Rate.PerSecond, c.Rate))
}
