package ingest

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// policyRecord is what the State of a store has of the policy that it is published
// with.
type policyRecord struct {
	Print   string    `json:"print"`   // of the block; "" = the block was removed
	Updated time.Time `json:"updated"` // when it became so
}

// policyPrint moves with everything that a block of the configuration says.
func policyPrint(p *millrace.Policy) string {
	if p == nil {
		return ""
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic("ingest: a valid policy does not encode: " + err.Error())
	}
	return canon.SHA256Hex(b)[:16]
}

// DatedPolicy returns a policy as a site publishes it: with the time when it was last
// changed, unless the policy has one. The store remembers the time, so all processes
// that publish the site agree. The policy may be nil.
func DatedPolicy(ctx context.Context, st store.State, site string, p *millrace.Policy, log *slog.Logger) (*millrace.Policy, error) {
	record := state.JSON[policyRecord]{State: st, Namespace: site, Key: "published policy"}
	updated, is := time.Time{}, policyPrint(p)
	err := record.Update(ctx, func(r *policyRecord) error {
		if r.Print != is {
			was := r.Updated
			// Later than before, whatever the clock does: readers go by it.
			if r.Updated = time.Now().UTC().Truncate(time.Second); !r.Updated.After(was) {
				r.Updated = was.Add(time.Second)
			}
			if p != nil && !p.Updated.IsZero() {
				if !p.Updated.After(was) {
					log.Warn("the policy has changed, and says that it has not: change its key updated, or leave it out",
						"updated", p.Updated.Format(time.RFC3339), "changed before", was.Format(time.RFC3339))
				}
				r.Updated = p.Updated
			}
			r.Print = is
		}
		updated = r.Updated
		return nil
	})
	if err != nil || p == nil {
		return nil, err
	}
	out := *p
	out.Updated = updated
	return &out, nil
}
