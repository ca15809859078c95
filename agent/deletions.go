package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
)

// observed is a source that records which kinds of changes it yields.
type observed struct {
	millrace.Source
	// full is called when a page is skipped. If it returns an error, the stream ends with it.
	// If nil, skipped pages do not end the stream.
	full func() error
	// marked, if not nil, is called with each checkpoint before it is applied.
	// Its error ends the stream.
	marked func(ctx context.Context, at time.Time) error

	changes  bool // the source yielded changes other than checkpoints
	complete bool // a checkpoint was complete for the whole site
	newer    bool // the source yielded changes since a complete reading, such as deltas
}

// Changes yields the changes of the source.
func (w *observed) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range w.Source.Changes(ctx, since) {
			if err == nil {
				err = w.observe(ctx, c)
			} else if w.full != nil && isSkip(err) {
				err = cmp.Or(w.full(), err)
			}
			if !yield(c, err) || err != nil && !isSkip(err) {
				return
			}
		}
	}
}

func isSkip(err error) bool {
	_, is := errors.AsType[*millrace.SkipError](err)
	return is
}

func (w *observed) observe(ctx context.Context, c millrace.Change) error {
	if c.Kind != millrace.KindCheckpoint {
		w.changes, w.newer = true, w.newer || c.Newer
		return nil
	}
	w.complete = w.complete || c.Checkpoint != nil && c.Checkpoint.Complete && c.Checkpoint.Section == ""
	if w.marked != nil {
		return w.marked(ctx, c.Time)
	}
	return nil
}

// deletionsAge is how long an unmodified primary source is sufficient evidence that no page
// was deleted.
const deletionsAge = 24 * time.Hour

// deletionsRecord is the stored state of the deletions of a primary source.
type deletionsRecord struct {
	Cursor millrace.Cursor `json:"cursor,omitempty"` // cursor of the other way
	Asked  time.Time       `json:"asked"`            // time of the last successful request for deletions
	// Owed is the time of the oldest state of the primary source whose deletions have not been
	// requested yet; zero = none.
	Owed time.Time `json:"owed,omitzero"`
}

// deletions reads the deletions of a primary source from another way.
type deletions struct {
	*sitePull
	w       *ways
	name    string // name of the other way
	primary string // protocol of the primary source
	read    func(ctx context.Context, since millrace.Cursor, from time.Time) iter.Seq2[millrace.Change, error]
	record  deletionsRecord
	coded   bool // the primary source sends only its changes, so reading all of it is cheap
	way     *Way // row in the report; nil = deletions were not requested
}

// deletions returns the reader of the deletions of a primary source. It returns nil if the
// source reports them itself.
func (s *sitePull) deletions(ctx context.Context, w *ways, primary, name string) (*deletions, error) {
	if name == "" || name == primary {
		return nil, nil //nolint:nilnil // no way reports deletions
	}
	proto, ok := named(name)
	if !ok {
		return nil, fmt.Errorf("%w: unknown protocol %q", millrace.ErrInvalid, name)
	}
	if proto.Deletions == nil {
		return nil, nil //nolint:nilnil // no way reports deletions
	}
	d := &deletions{sitePull: s, w: w, name: name, primary: primary, read: s.policy.deletions(proto)}
	var err error
	if way := w.found.Site.Way(primary); way != nil && way.Offer != nil && way.Offer.Collection != "" {
		d.coded = fetch.HasDictionary(ctx, s.showing(s.client), way.Offer.Collection)
	}
	d.record, err = d.stored().Load(ctx)
	return d, err
}

func (d *deletions) stored() state.JSON[deletionsRecord] {
	return state.JSON[deletionsRecord]{State: d.store.State(), Namespace: d.root, Key: "deletions of " + d.primary + " by " + d.name}
}

func (d *deletions) save(ctx context.Context) error { return d.stored().Save(ctx, d.record) }

// owe records a state of the primary source before the pages of that state are stored. If the pull
// is killed before it requests the deletions, the next pull requests them.
func (d *deletions) owe(ctx context.Context, at time.Time) error {
	if at.IsZero() || !d.record.Owed.IsZero() && !at.Before(d.record.Owed) {
		return nil
	}
	d.record.Owed = at
	return d.save(ctx)
}

// sync reads the primary source, and then deletes the pages that the other way reports. If
// that fails, or too many pages are reported, sync reads the whole source.
func (d *deletions) sync(
	ctx context.Context, proto protocol.Protocol, from string, sync func(millrace.Source, *observed) (*mirror.Report, error),
) (*mirror.Report, error) {
	began := d.policy.now()
	before, err := d.site.Cursor(ctx, from)
	if err != nil {
		return &mirror.Report{}, err
	}
	seen := &observed{}
	seen.marked = func(ctx context.Context, at time.Time) error {
		if at.IsZero() && seen.changes {
			at = began
		}
		return d.owe(ctx, at)
	}
	rep, err := sync(d.policy.undeleting(proto), seen)
	if err != nil || rep.UnconfirmedDeletions > 0 {
		return rep, err
	}
	after, err := d.site.Cursor(ctx, from)
	if err != nil {
		return rep, err
	}
	// A complete reading may list pages that were deleted while the server made its cursor. So
	// deletions are also requested after a complete reading, but not if the source is unmodified.
	if age := began.Sub(d.record.Asked); before == after && d.record.Owed.IsZero() && age >= 0 && age < deletionsAge {
		return rep, nil
	}
	if d.coded && seen.complete && !seen.newer && d.record.Cursor != "" && d.record.Owed.After(d.record.Asked) {
		// The source was newer than the last request for deletions. The next request continues at
		// the cursor.
		d.record.Asked, d.record.Owed = began.UTC(), time.Time{}
		return rep, d.save(ctx)
	}
	gone, err := d.ask(ctx, from, rep)
	d.way = &Way{Protocol: d.name, Part: "deletions", Pages: gone}
	if err == nil || ctx.Err() != nil {
		return rep, err
	}
	if end := d.budget.ended(err); end != nil || d.policy.ended() != nil {
		return rep, err
	}
	d.way.Code, d.way.Error = millrace.ErrorCode(err), fmt.Sprintf("%v; reading all of %s instead", err, d.primary)
	if seen.complete {
		d.way.Error = fmt.Sprintf("%v; all of %s was read", err, d.primary)
	}
	if !errors.Is(err, millrace.ErrConflict) && d.w != nil {
		d.w.fail(d.name, err)
		if err := d.w.save(ctx); err != nil {
			return rep, err
		}
	}
	owed := d.record.Owed
	d.record = deletionsRecord{}
	if seen.complete && !errors.Is(err, millrace.ErrConflict) {
		d.record.Owed = owed // request the deletions again in the next pull
	}
	if err := d.save(ctx); err != nil || seen.complete {
		return rep, err
	}
	if _, err := d.site.Apply(ctx, from, []millrace.Change{{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{}}}); err != nil {
		return rep, err
	}
	complete, err := sync(d.policy.reader(proto), new(observed))
	return joinReports(rep, complete), err
}

// manyGone is the maximum number of reported deletions. They are kept in memory until all have
// been received and checked.
const manyGone = 100_000

// ask applies the reported deletions and returns their number.
func (d *deletions) ask(ctx context.Context, from string, rep *mirror.Report) (int, error) {
	var urls []string
	var next *millrace.Checkpoint
	for c, err := range d.read(ctx, d.record.Cursor, d.record.Owed) {
		switch {
		case isSkip(err):
		case err != nil:
			return 0, err
		case c.Kind == millrace.Delete:
			if urls = append(urls, c.URL); len(urls) > manyGone {
				return 0, fmt.Errorf("%w: more than %d pages reported as deleted", millrace.ErrInvalid, manyGone)
			}
		case c.Kind == millrace.KindCheckpoint:
			next = c.Checkpoint
		}
	}
	if next == nil {
		return 0, fmt.Errorf("%w: incomplete list of deletions", millrace.ErrInvalid)
	}
	var gone []millrace.Change
	for some := range slices.Chunk(urls, 200) {
		for ref, err := range d.site.KnownRefs(ctx, from, some...) {
			if err != nil {
				return 0, err
			}
			gone = append(gone, millrace.Change{Kind: millrace.Delete, Ref: ref})
		}
	}
	if err := d.believe(ctx, from, len(gone)); err != nil {
		return 0, err
	}
	for some := range slices.Chunk(gone, 200) {
		t, err := d.site.Apply(ctx, from, some)
		rep.Add(t)
		if err != nil {
			return 0, err
		}
	}
	d.record = deletionsRecord{Cursor: next.Cursor, Asked: d.policy.now().UTC()}
	return len(gone), d.save(ctx)
}

// believe returns an error if a fifth of the pages or more would be deleted. The primary source
// must confirm such a loss.
func (d *deletions) believe(ctx context.Context, from string, lost int) error {
	if lost == 0 {
		return nil
	}
	known := 0
	for _, err := range d.site.KnownRefs(ctx, from) {
		if err != nil {
			return err
		}
		if known++; known > 5*lost {
			return nil
		}
	}
	if known < 5 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d pages reported as deleted", millrace.ErrInvalid, lost, known)
}

// joinReports adds up the reports of two readings of one source.
func joinReports(a, b *mirror.Report) *mirror.Report {
	b.Added, b.Updated, b.Deleted = a.Added+b.Added, a.Updated+b.Updated, a.Deleted+b.Deleted
	b.Asked, b.Unmodified = a.Asked+b.Asked, a.Unmodified+b.Unmodified
	b.Fetched, b.Text = max(a.Fetched, b.Fetched), max(a.Text, b.Text)
	for name, n := range a.Fallbacks {
		if b.Fallbacks == nil {
			b.Fallbacks, b.Fallback = map[string]int{}, a.Fallback
		}
		b.Fallbacks[name] += n
	}
	return b
}
