package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

// policyOf is whose cursor remembers a site's policy.
const policyOf = "policy"

// policyRecord is what a site remembers of the policy that it is published
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
func (p *process) dated(ctx context.Context, site store.Site) (*millrace.Policy, error) {
	is := policyRecord{Print: policyPrint(p.policy)}
	for {
		cursor, err := site.Cursor(ctx, policyOf)
		if err != nil {
			return nil, err
		}
		var was policyRecord
		if cursor != "" {
			if err := json.Unmarshal([]byte(cursor), &was); err != nil {
				return nil, fmt.Errorf("what the store remembers of the policy: %w: %w", millrace.ErrInvalid, err)
			}
		}
		is.Updated = was.Updated
		if is.Print != was.Print {
			// Later than before, whatever the clock does: readers go by it.
			if is.Updated = time.Now().UTC().Truncate(time.Second); !is.Updated.After(was.Updated) {
				is.Updated = was.Updated.Add(time.Second)
			}
			if p.policy != nil && !p.policy.Updated.IsZero() {
				if !p.policy.Updated.After(was.Updated) {
					p.log.Warn("the policy has changed, and says that it has not: change its key updated, or leave it out",
						"updated", p.policy.Updated.Format(time.RFC3339), "changed before", was.Updated.Format(time.RFC3339))
				}
				is.Updated = p.policy.Updated
			}
			b, err := json.Marshal(is)
			if err != nil {
				return nil, err
			}
			switch err := site.Swap(ctx, policyOf, cursor, millrace.Cursor(b)); {
			case errors.Is(err, millrace.ErrConflict):
				continue // another process has been faster
			case err != nil:
				return nil, err
			}
		}
		if p.policy == nil {
			return nil, nil
		}
		out := *p.policy
		out.Updated = is.Updated
		return &out, nil
	}
}

// agree refuses a policy that allows what the server does not.
func (c *doors) agree(p *millrace.Policy) error {
	if p == nil || c.Rate == 0 || p.Rate.PerSecond <= c.Rate {
		return nil
	}
	return usageError(fmt.Sprintf("%s.rate.per-second %v: clients would be told that they may ask more often than --rate %v lets them", policyKey, p.Rate.PerSecond, c.Rate))
}
