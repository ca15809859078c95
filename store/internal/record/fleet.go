package record

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// FleetPrefix is the prefix of lease names for the groups of a fleet. The group's number follows.
const FleetPrefix = "fleet/"

const (
	fleetMoves = 3              // maximum number of moves of a host in fleetDay
	fleetDay   = 24 * time.Hour // period in which moves are counted
	// FleetRate is the rate of a network with more than [store.MaxGroupHosts] hosts, in requests per
	// second.
	FleetRate = 10
	// FleetCost is the assumed number of requests of a turn, for a host that has had no turn.
	FleetCost = 4
	// SlotTime is how long a group without hosts is kept after the turn that the rate of its network
	// reserved for it.
	SlotTime = time.Minute

	minInterval, maxInterval = time.Second, 365 * 24 * time.Hour
)

// label matches the label of a site.
var label = regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]{0,63}$`)

// fleetError returns ErrInvalid for a site, with a reason.
func fleetError(s *store.FleetSite, text string) error {
	return millrace.Coded("fleet-site", fmt.Errorf("site %s: %w: %s", s.URL, millrace.ErrInvalid, text))
}

// FleetHost returns the host of a site. If a setting is invalid, it returns ErrInvalid.
func FleetHost(s *store.FleetSite) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || !strings.HasSuffix(u.Path, "/") || u.RawQuery != "" || len(s.URL) > 2048 {
		return "", fleetError(s, "not the URL of a site or a folder; use http:// or https:// with a host, and a path that ends with /")
	}
	for _, l := range s.Labels {
		if !label.MatchString(strings.TrimPrefix(l, "-")) {
			return "", fleetError(s, fmt.Sprintf("label %q; use at most 64 small letters, digits, and . _ : / -", l))
		}
	}
	if s.Priority < 0 || s.Priority > store.PriorityHigh {
		return "", fleetError(s, fmt.Sprintf("priority %d; use 1, 2 or 3", s.Priority))
	}
	for _, d := range []time.Duration{s.Min, s.Max} {
		if d > 0 && (d < minInterval || d > maxInterval) {
			return "", fleetError(s, fmt.Sprintf("interval %s; use 1s to 8760h", d))
		}
	}
	if s.Webhook != "" && s.Webhook != "-" {
		hook, err := url.Parse(s.Webhook)
		if err != nil || hook.Hostname() == "" || hook.Scheme != "https" && hook.Scheme != "http" || len(s.Webhook) > 2048 {
			return "", fleetError(s, "the webhook is not the URL of a server; use http:// or https:// with a host")
		}
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), nil
}

// MergeFleet merges the settings of a Put into a site. old is the zero FleetSite for a new site.
// changed reports whether the site differs from old.
func MergeFleet(old, s store.FleetSite, now time.Time) (out store.FleetSite, changed bool, err error) {
	if old.URL == "" {
		old.Host, old.Added, old.Due = s.Host, now, now
	}
	out = old
	out.URL, out.Unlisted, out.Removing = s.URL, s.Unlisted && (old.URL == "" || old.Unlisted), false
	out.Priority = cmp.Or(s.Priority, old.Priority, store.PriorityNormal)
	out.Min, out.Max = max(0, cmp.Or(s.Min, old.Min)), max(0, cmp.Or(s.Max, old.Max))
	if out.Max > 0 && out.Min > out.Max {
		return out, false, fleetError(&s, fmt.Sprintf("the minimum interval %s exceeds the maximum %s; change both", out.Min, out.Max))
	}
	if latest := out.Pulled.Add(out.Max); s.Max > 0 && !out.Pulled.IsZero() && latest.Before(out.Due) {
		out.Due = latest
	}
	if !s.Due.IsZero() && s.Due.Before(out.Due) {
		out.Due = s.Due.UTC().Truncate(time.Millisecond)
	}
	if old.Unlisted && !out.Unlisted && out.Due.Before(now) {
		out.Due = now
	}
	if out.Webhook = cmp.Or(s.Webhook, old.Webhook); out.Webhook == "-" {
		out.Webhook = ""
	}
	out.Labels = slices.Clone(old.Labels)
	for _, l := range s.Labels {
		if gone, ok := strings.CutPrefix(l, "-"); ok {
			out.Labels = slices.DeleteFunc(out.Labels, func(l string) bool { return l == gone })
		} else if !slices.Contains(out.Labels, l) {
			out.Labels = append(out.Labels, l)
		}
	}
	slices.Sort(out.Labels)
	changed = !slices.Equal(old.Labels, out.Labels) || old.Priority != out.Priority || old.Min != out.Min || old.Max != out.Max ||
		old.Unlisted != out.Unlisted || !old.Due.Equal(out.Due) || old.Webhook != out.Webhook || old.Removing != out.Removing
	return out, changed, nil
}

// FleetClass returns the class of a site: its priority, or the highest class if the site has had no
// turn.
func FleetClass(s *store.FleetSite) int {
	if s.Pulled.IsZero() && s.Error == "" {
		return store.PriorityHigh
	}
	return s.Priority
}

// classWeights are the relative shares of the classes, lowest first, in the turns of workers if all
// classes have due sites.
var classWeights = [store.PriorityHigh]int{1, 2, 4}

// Of FleetTurns turns of a group, FleetFirst go to due sites of the highest class, if the group has
// any. The others go to the site that has been due the longest. The fence of the lease counts the
// turns.
const (
	FleetTurns = 7
	FleetFirst = 4
)

// FleetShares divides n turns among the classes. The share of the highest class comes first.
func FleetShares(n int) (shares [store.PriorityHigh]int) {
	total := 0
	for _, w := range classWeights {
		total += w
	}
	rest := n
	for i := range shares {
		shares[i] = n * classWeights[len(classWeights)-1-i] / total
		rest -= shares[i]
	}
	for ; rest > 0; rest-- {
		x := rand.IntN(total)
		for i := range shares {
			if x -= classWeights[len(classWeights)-1-i]; x < 0 {
				shares[i]++
				break
			}
		}
	}
	return shares
}

// CheckTurn returns ErrInvalid for invalid arguments of [store.Fleet.Lease].
func CheckTurn(worker string, d time.Duration) error {
	if worker == "" || d < time.Millisecond {
		return millrace.Coded("bad-lease", fmt.Errorf("%w: the worker has no name, or the duration is not positive", millrace.ErrInvalid))
	}
	return nil
}

// FleetMoves reports whether a host may move now. It returns the new start of the period and the
// new number of moves.
func FleetMoves(since time.Time, moves int, now time.Time) (time.Time, int, bool) {
	if now.Sub(since) >= fleetDay || now.Before(since) {
		return now, 1, true
	}
	return since, moves + 1, moves < fleetMoves
}

// GroupBusy returns the error for a group that has no turn now.
func GroupBusy(host, address string) error {
	if address != "" {
		host += " (" + address + ")"
	}
	return millrace.Coded("group-busy", fmt.Errorf("%s: %w: another turn sends requests to this machine, or has just done so", host, millrace.ErrConflict))
}

// VisitHolder returns the holder of the leases of a turn's visits. Each turn has its own holder, so
// that a repeated visit finds its lease.
func VisitHolder(turn store.Lease) string {
	return fmt.Sprintf("%s for %s, turn %d", turn.Holder, turn.Name, turn.Fence)
}

// FleetLost returns the error for a lost lease of a group.
func FleetLost(l store.Lease) error {
	return millrace.Coded("lease-lost", fmt.Errorf("lease %s: %w: expired, or held by another worker", l.Name, millrace.ErrConflict))
}

// LagPercentiles are the percentiles of [store.FleetStats.Lag].
var LagPercentiles = [4]int{50, 90, 99, 100}

// HasCheckpoint reports whether a batch has a checkpoint.
func HasCheckpoint(batch []millrace.Change) bool {
	return slices.ContainsFunc(batch, func(c millrace.Change) bool { return c.Kind == millrace.KindCheckpoint })
}
