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

// policyRecord is the stored record of the policy that a site publishes.
type policyRecord struct {
	Print   string    `json:"print"`   // hash of the policy; "" = the policy was removed
	Updated time.Time `json:"updated"` // time of the policy's last change
}

// policyPrint returns a hash of a policy's content, or "" for nil.
func policyPrint(p *millrace.Policy) string {
	if p == nil {
		return ""
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic("ingest: encode policy: " + err.Error())
	}
	return canon.SHA256Hex(b)[:16]
}

// DatedPolicy returns a policy with the time of its last change, unless it already has one. The
// store keeps the time, so all processes that publish the site use the same time. The policy may
// be nil.
func DatedPolicy(ctx context.Context, st store.State, site string, p *millrace.Policy, log *slog.Logger) (*millrace.Policy, error) {
	record := state.JSON[policyRecord]{State: st, Namespace: site, Key: "published policy"}
	updated, is := time.Time{}, policyPrint(p)
	err := record.Update(ctx, func(r *policyRecord) error {
		if r.Print != is {
			was := r.Updated
			// The time must not decrease, even if the clock does, because readers compare these
			// times.
			if r.Updated = time.Now().UTC().Truncate(time.Second); !r.Updated.After(was) {
				r.Updated = was.Add(time.Second)
			}
			if p != nil && !p.Updated.IsZero() {
				if !p.Updated.After(was) {
					log.Warn("policy changed, but its updated time is not later; set a later time for updated in the policy, or remove updated",
						"date", p.Updated.Format(time.RFC3339), "previous", was.Format(time.RFC3339))
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
