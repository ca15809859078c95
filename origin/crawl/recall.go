package crawl

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace"
)

// recall reads the refs that the sink has stored. It adds them to the table, queues addresses that
// were never fetched, and extracts pages again if they were extracted with other rules.
func (r *run) recall(ctx context.Context) error {
	r.table.begin(r.knownRefs == nil)
	if r.knownRefs == nil {
		return nil
	}
	err := r.storedRefs(ctx, r.rules, func(t *task, made *result) error {
		k := key(t.url)
		if made != nil {
			t.version = made.made
			r.reextracted = append(r.reextracted, k)
			if err := r.emit(made.change()); err != nil {
				return err
			}
		}
		e, _ := r.table.get(k)
		e.flags, e.state = e.flags|named, t.state
		switch t.state {
		case hasPage:
			e.about = t.version.sketch
			v := t.version
			if v.old != nil {
				v = *v.old
			}
			e.date(v.hint)
			r.traps.note(t.url, !t.version.nothingNew)
			if c := t.version.claim; c != 0 {
				r.table.set(c, entry{state: claimed, about: k, flags: named})
			}
		case aliased:
			e.about = t.version.target
			r.traps.note(t.url, !t.version.nothingNew)
		case pending:
			if err := r.queue.push(task{url: t.url, depth: t.depth, state: pending, listed: t.version.listed}); err != nil {
				return err
			}
		}
		r.table.set(k, e)
		r.known++
		return nil
	})
	if err != nil {
		return err
	}
	if slices.Sort(r.reextracted); len(r.reextracted) > 0 {
		r.log.Info("pages extracted again by changed rules", "site", r.scope.base, "pages", len(r.reextracted))
	}
	r.table.prune()
	return nil
}

// countHint counts whether the modification time in a list correctly announced a change. If most of
// these hints are wrong, as in a list that always contains the current day, the remaining hints get
// no priority.
func (r *run) countHint(t *task, same bool) {
	if !t.hinted {
		return
	}
	if !same {
		r.right++
		return
	}
	if r.wrong++; r.wrong >= maxWrong && r.wrong > 4*r.right {
		r.hinted = nil
	}
}

// maxWrong is the number of wrong hints at which countHint starts to compare the counts.
const maxWrong = 20

// taskOf returns the task for a stored ref.
func (r *run) taskOf(ref millrace.Ref) task {
	t := storedTask(ref, r.rules)
	t.full, t.reextracted = r.reread, r.wasReextracted(key(ref.URL))
	return t
}

func storedTask(ref millrace.Ref, rules *extractionRules) task {
	v := parseVersion(ref.Version, rules.by)
	t := task{url: ref.URL, knownVersion: ref.Version, version: v, depth: v.depth}
	switch v.kind {
	case isAlias:
		t.state = aliased
	case isPending:
		t.state = pending
	default:
		t.state = hasPage
	}
	return t
}

// recallOne returns the task for one address, with its stored version.
func (r *run) recallOne(ctx context.Context, t task) (task, error) {
	if r.knownRefs == nil {
		return t, nil
	}
	for ref, err := range r.knownRefs(ctx, t.url) {
		if err != nil {
			return t, fatalError{fmt.Errorf("read stored refs: %w", err)}
		}
		if ref.URL == t.url {
			hold := r.taskOf(ref)
			t.knownVersion, t.version, t.state, t.depth, t.full, t.reextracted = hold.knownVersion, hold.version, hold.state, hold.depth, hold.full, hold.reextracted
		}
	}
	return t, nil
}
