package scp

import (
	"slices"
	"time"
)

// names returns the sections to read: those of the options, else "all", else every section. It
// omits new sections without a snapshot, because deltas alone are not sufficient.
func (r *run) names(o *offer) []string {
	var names []string
	for _, c := range o.collections {
		known := !r.was.section(c.section).Generated.IsZero()
		if (!c.delta || known) && !slices.Contains(names, c.section) {
			names = append(names, c.section)
		}
	}
	switch {
	case len(r.o.Sections) > 0:
		return slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(r.o.Sections, n) })
	case slices.Contains(names, every):
		return []string{every}
	}
	return names
}

// others returns the sections that may replace "all".
func (r *run) others(o *offer) (names []string) {
	for _, c := range o.collections {
		if c.section != every && !c.delta && !slices.Contains(names, c.section) {
			names = append(names, c.section)
		}
	}
	return names
}

// of returns the newest snapshot of a section, or nil, and the deltas of the section in the order
// of their times.
func (o *offer) of(section string) (snapshot *offered, deltas []*offered) {
	for _, c := range o.collections {
		switch {
		case c.section != section:
		case c.delta:
			deltas = append(deltas, c)
		default:
			snapshot = c
		}
	}
	return snapshot, deltas
}

// expires returns the earliest expiry of the newest snapshots of sections; zero means never.
func (o *offer) expires(sections []string) (at time.Time) {
	for _, name := range sections {
		s, _ := o.of(name)
		if s != nil && !s.expires.IsZero() && (at.IsZero() || s.expires.Before(at)) {
			at = s.expires
		}
	}
	return at
}

// later returns the deltas generated after a time.
func later(deltas []*offered, than time.Time) []*offered {
	return slices.DeleteFunc(slices.Clone(deltas), func(d *offered) bool { return !d.generated.After(than) })
}

// connect reports whether deltas, in order, leave no gap after a time (Recovery from Missed
// Deltas).
func connect(deltas []*offered, from time.Time) bool {
	for _, d := range deltas {
		if d.since.After(from) {
			return false
		}
		from = d.generated
	}
	return true
}

// missed is a number of deltas above the value of any option. It marks a gap between deltas, which
// only a snapshot fills.
const missed = 1 << 30

// resync reports whether to read a newer snapshot instead of the newer deltas. Only a snapshot
// shows deletions.
func resync(snapshot *offered, deltas []*offered, was applied, every int) bool {
	if snapshot == nil || !snapshot.generated.After(was.Snapshot) {
		return false
	}
	size := int64(0)
	for _, d := range deltas {
		size += d.size()
	}
	switch {
	case len(deltas) == 0 && snapshot.generated.After(was.Generated), // only the snapshot contains the changes
		!connect(deltas, was.Generated),
		was.Deltas+len(deltas) > every, // also true for missed
		snapshot.pages >= 0 && snapshot.pages < was.Pages,
		snapshot.size() > 0 && snapshot.size() <= 4*size: // a snapshot is worth more than deltas, because it shows deletions
		return true
	}
	return false
}
