package scp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// writerFormat is incremented whenever the same view gives different bytes.
const writerFormat = 1

// moment is a position in the log. Its time has millisecond precision.
type moment struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
}

// note is stored with each file, for the next edition.
type note struct {
	Key       string    `json:"key"` // everything that determines the bytes, except the pages
	ID        string    `json:"id"`
	Section   string    `json:"section"`
	Period    string    `json:"period,omitempty"` // period of a delta
	Since     time.Time `json:"since,omitzero"`   // start of the period of a delta
	Until     time.Time `json:"until,omitzero"`   // end of the period of a delta
	Generated time.Time `json:"generated"`
	Pages     int       `json:"pages"`
	At        moment    `json:"at"`      // position in the log up to which the file contains changes
	Made      time.Time `json:"made"`    // time of the edition that generated the file
	Expires   time.Time `json:"expires"` // expiry time that the sitemap last declared
	Retired   time.Time `json:"retired,omitzero"`
	// Clean is the last known position at which all pages of the file still existed. If zero, it is
	// At.
	Clean moment `json:"clean,omitzero"`
	// Holds contains the sorted hashes of a delta's page URLs; empty = unknown. Only the note of a
	// group's first file contains them.
	Holds []uint32 `json:"holds,omitempty"`
}

func (n *note) delta() bool { return n.Period != "" }

// slot returns a key that is the same for a collection and its successors.
func (n *note) slot() string { return n.Section + " " + n.Period }

// group is one collection in all its codings.
type group struct {
	note
	files []millrace.Artifact // files in the order of codings
}

// codings are the codings of every collection, the best one first.
var codings = []string{"zstd", "gzip", ""}

// codings returns the codings of the publisher's collections. A compact site has only the best one.
func (p *publisher) codings() []string {
	if p.compact {
		return codings[:1]
	}
	return codings
}

// plan holds the state of generating one edition.
type plan struct {
	*publisher
	view      millrace.View
	site      millrace.Site
	now       time.Time
	artifacts millrace.ArtifactSet
	key       string
	sections  []*section // the first section is "all"
	byKey     map[string]*section
	previous  []*group             // collections of the previous edition
	latest    map[string]time.Time // generation time of the newest collection, by slot
	missing   []note               // notes of collections that another replica may have, or that were purged
	used      map[*group]bool
	period    period    // current period
	again     time.Time // time at which the next edition is due even if no page changes
}

func (p *publisher) plan(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) (*plan, error) {
	site := v.Site()
	pl := &plan{
		publisher: p, view: v, site: site, now: now, artifacts: s, used: map[*group]bool{}, latest: map[string]time.Time{},
		key: fmt.Sprintf("%d %s %s %s", writerFormat, site.Base, site.Language, site.FirstEpoch()),
	}
	var err error
	if pl.sections, pl.byKey, err = p.divide(ctx, v); err != nil {
		return nil, err
	}
	frequency := p.frequency
	if frequency == "" {
		if frequency, err = updateFrequency(ctx, v, now); err != nil {
			return nil, err
		}
	}
	if p.own.NoChecksum {
		pl.key += " bare"
	}
	pl.period = periodOf(frequency, now)
	pl.again = pl.period.end
	byID := map[string]*group{}
	for _, f := range s.Existing() {
		var n note
		if err := json.Unmarshal(f.Note, &n); err != nil {
			continue // written by another version of millrace
		}
		g := byID[n.ID]
		if g == nil {
			g = &group{note: n}
			byID[n.ID] = g
			pl.previous = append(pl.previous, g)
			pl.follows(&n)
		}
		g.files = append(g.files, f)
	}
	for _, raw := range s.Withdrawn() {
		var n note
		if err := json.Unmarshal(raw, &n); err == nil {
			pl.follows(&n)
			pl.missing = append(pl.missing, n)
		}
	}
	if err := pl.purge(ctx); err != nil {
		return nil, err
	}
	for _, g := range pl.previous {
		sec := pl.section(g.Section)
		if sec == nil || g.Key != pl.key || !g.Retired.IsZero() || len(g.files) != len(pl.codings()) {
			continue
		}
		if !g.delta() && (sec.snapshot == nil || g.Generated.After(sec.snapshot.Generated)) {
			sec.snapshot = g
		}
	}
	return pl, nil
}

// follows ensures that later collections of the slot of n are newer than n.
func (pl *plan) follows(n *note) {
	if at := n.slot(); n.Generated.After(pl.latest[at]) {
		pl.latest[at] = n.Generated
	}
}

func (pl *plan) section(name string) *section {
	for _, s := range pl.sections {
		if s.name == name {
			return s
		}
	}
	return nil
}

// in returns the sections that contain a page.
func (pl *plan) in(absolute string) []*section {
	out := pl.sections[:1:1]
	if s := pl.byKey[pl.publisher.key(canon.Relative(pl.site.Base, absolute))]; s != nil {
		out = append(out, s)
	}
	return out
}

// plan marks the sections whose snapshot differs from the view.
func (pl *plan) plan(ctx context.Context) error {
	var since *moment
	for _, s := range pl.sections {
		if s.snapshot == nil {
			s.touched, s.newest = true, moment{pl.site.Seq, pl.site.Time}
		} else if at := &s.snapshot.At; since == nil || at.Seq < since.Seq {
			since = at
		}
	}
	if since == nil {
		return nil
	}
	for c, err := range pl.view.Changes(ctx, pl.site.At(since.Seq)) {
		if errors.Is(err, millrace.ErrConflict) {
			for _, s := range pl.sections {
				s.touched, s.newest = true, moment{pl.site.Seq, pl.site.Time}
			}
			return nil
		}
		if err != nil {
			return err
		}
		if c.Kind == millrace.KindCheckpoint {
			continue
		}
		for _, s := range pl.in(c.URL) {
			if s.snapshot == nil || !c.Time.After(s.snapshot.At.Time) {
				continue
			}
			s.touched = true
			if c.Time.After(s.newest.Time) {
				s.newest = moment{pl.site.Seq, c.Time}
			}
		}
	}
	for _, s := range pl.sections {
		if !s.touched {
			// The state is the same. With the new position, the next edition need not read the log
			// from the old one.
			s.snapshot.At = moment{pl.site.Seq, pl.site.Time}
		}
	}
	return nil
}

// generated returns the generation time of a collection: the time of its newest change, in whole
// seconds. It is later than the times of all previous collections, including purged ones, because a
// client reads only collections that are newer than those it has read. For a site that never had a
// page, it is the Unix time 0, because readers reject the year 1. If another replica has built a
// collection of the same state, which contains the log up to sequence number to, generated returns
// the time of that collection, so both replicas generate the same bytes.
func (pl *plan) generated(newest time.Time, of *note, to uint64) time.Time {
	for _, n := range pl.missing {
		if n.Key == pl.key && n.slot() == of.slot() && n.At.Seq >= to && n.At.Seq <= pl.site.Seq {
			return n.Generated
		}
	}
	if newest.IsZero() {
		newest = time.Unix(0, 0)
	}
	t, before := newest.UTC().Truncate(time.Second), pl.latest[of.slot()]
	if !before.IsZero() && !t.After(before) {
		t = before.Add(time.Second)
	}
	return t
}

// A site that changes all the time must not fill the disk with replaced collections. Within the
// duration pace, the versions of a collection take at most as many bytes as the snapshot of their
// section, or minRate bytes a second if that is more.
const (
	pace    = time.Minute
	minRate = 16 << 10
)

// early reports whether it is too early to replace a collection of a section. If so, it schedules
// an edition for the time at which replacing is allowed. No further edition of a static site
// follows by itself, so its collections are always replaced.
func (pl *plan) early(s *section, g *group) bool {
	rate := int64(minRate)
	if s.snapshot != nil {
		rate = max(rate, s.snapshot.files[0].Size/int64(pace/time.Second))
	}
	due := g.Made.Add(time.Duration(g.files[0].Size/rate) * time.Second)
	if pl.static || !pl.now.Before(due) {
		return false
	}
	if due.Before(pl.again) {
		pl.again = due
	}
	return true
}

// list adds a collection to the sitemap of this edition.
func (pl *plan) list(s *section, g *group) error {
	s.listed = append(s.listed, g)
	if pl.used[g] {
		return nil // generated in this edition
	}
	g.Expires = pl.period.after().end
	return pl.keep(g)
}

// keep adds a collection of the previous edition to the artifact set again, with its note.
func (pl *plan) keep(g *group) error {
	raw, err := json.Marshal(g.note)
	if err != nil {
		return err
	}
	reduced := g.note
	reduced.Holds = nil
	short, err := json.Marshal(reduced)
	if err != nil {
		return err
	}
	pl.used[g] = true
	for i := range g.files {
		if i > 0 {
			raw = short
		}
		g.files[i].Note, g.files[i].Header = raw, pl.header(&g.note)
		pl.artifacts.Keep(g.files[i])
	}
	return nil
}

// stamp formats a time for use in an ID.
func stamp(t time.Time) string {
	return strings.NewReplacer("-", "", ":", "", "T", "", "Z", "").Replace(t.UTC().Format(time.RFC3339))
}
