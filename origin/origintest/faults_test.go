package origintest_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/origin/origintest"
)

// fault is an error that an origin can have, and the name of the case that must find it.
type fault struct {
	name, finds string
	changes     func(r *reader, ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error]
	page        func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error)
}

type (
	seq   = iter.Seq2[millrace.Change, error]
	yield = func(millrace.Change, error) bool
)

// mapped returns a stream in which step modifies each step, or drops the step by returning false.
func mapped(s seq, step func(c *millrace.Change, err *error) bool) seq {
	return func(yield yield) {
		for c, err := range s {
			if step(&c, &err) && !yield(c, err) {
				return
			}
		}
	}
}

// steps returns a fault that changes the steps of a stream.
func steps(name, finds string, step func(c *millrace.Change, err *error) bool) fault {
	return fault{name: name, finds: finds, changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		return mapped(r.changes(ctx, since), step)
	}}
}

// pages returns a fault that changes pages.
func pages(name, finds string, page func(p *millrace.Page, err error) (*millrace.Page, error)) fault {
	return fault{name: name, finds: finds, page: func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
		return page(r.page(ctx, have))
	}}
}

var faults = []fault{
	steps("no mark", "a stream ends with a checkpoint", func(c *millrace.Change, _ *error) bool { return c.Kind != millrace.KindCheckpoint }),
	steps("a cursor that does not print", "a stream ends with a checkpoint", func(c *millrace.Change, _ *error) bool {
		if c.Checkpoint != nil {
			c.Checkpoint.Cursor += "\x00"
		}
		return true
	}),
	steps("URLs that are not canonical", "a stream ends with a checkpoint", func(c *millrace.Change, _ *error) bool {
		c.URL = strings.Replace(c.URL, "/page-", "/%70age-", 1)
		return true
	}),
	pages("a field that it does not speak for", "pages can be fetched", func(p *millrace.Page, err error) (*millrace.Page, error) {
		if p != nil {
			p.Author = "A. Miller"
		}
		return p, err
	}),
	pages("a page for every URL", "pages can be fetched", func(p *millrace.Page, err error) (*millrace.Page, error) {
		if errors.Is(err, millrace.ErrNotFound) {
			return &millrace.Page{}, nil
		}
		return p, err
	}),
	pages("errors without advice", "pages can be fetched", func(p *millrace.Page, err error) (*millrace.Page, error) {
		if errors.Is(err, millrace.ErrNotFound) {
			err = errors.New("no such page")
		}
		return p, err
	}),
	{name: "versions are ordered", finds: "pages can be fetched", page: func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
		p, err := r.page(ctx, have)
		if err == nil && have.Version > p.Version {
			return nil, millrace.ErrUnmodified
		}
		return p, err
	}},
	{name: "conditions are ignored", finds: "pages can be fetched", page: func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
		have.Version = ""
		return r.page(ctx, have)
	}},
	{name: "one buffer for all", finds: "pages can be fetched concurrently", page: func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
		buffer := r.file + ".buffer"
		_ = os.WriteFile(buffer, []byte(have.URL), 0o600)
		runtime.Gosched()
		b, _ := os.ReadFile(buffer)
		have.URL = string(b)
		return r.page(ctx, have)
	}},
	{name: "a cursor is the end", finds: "a cursor resumes", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		if since != "" {
			return func(yield yield) { yield(mark(since, false), nil) }
		}
		return r.changes(ctx, since)
	}},
	{name: "an unknown cursor is the end", finds: "an invalid cursor loses no page", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		if since != "" && len(since) != 16 {
			return func(yield yield) { yield(mark(since, false), nil) }
		}
		return r.changes(ctx, since)
	}},
	{name: "a cursor of the clock", finds: "mirroring an unchanged site writes nothing", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		return mapped(r.changes(ctx, since), func(c *millrace.Change, _ *error) bool {
			if c.Checkpoint != nil {
				c.Checkpoint.Cursor = millrace.Cursor(fmt.Sprint(time.Now().UnixNano()))
			}
			return true
		})
	}},
	{name: "versions of the process", finds: "mirroring an unchanged site writes nothing", page: func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
		p, err := r.page(ctx, have)
		if p != nil {
			p.Version = fmt.Sprintf("%p", r)
		}
		return p, err
	}, changes: func(r *reader, ctx context.Context, _ millrace.Cursor) seq {
		return mapped(r.changes(ctx, ""), func(c *millrace.Change, _ *error) bool {
			c.Version = ""
			return true
		})
	}},
	steps("no deletions", "changes are mirrored", func(c *millrace.Change, _ *error) bool {
		if c.Checkpoint != nil {
			c.Checkpoint.Complete = false
		}
		return true
	}),
	{name: "the title is the version", finds: "changes are mirrored", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		return mapped(r.changes(ctx, since), func(c *millrace.Change, _ *error) bool {
			if len(c.Version) > 0 {
				c.Version = c.Version[:0] + digest(c.URL)
			}
			return true
		})
	}, page: func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
		have.Version = ""
		p, err := r.page(ctx, have)
		if p != nil {
			p.Version = digest(have.URL)
		}
		return p, err
	}},
	{name: "an empty site deletes", finds: "the loss of all pages needs confirmation", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		c, err := r.load()
		if err == nil && len(c.Pages) == 0 {
			return func(yield yield) {
				for i := range 24 {
					if !yield(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: fmt.Sprintf("/page-%02d", i)}}, nil) {
						return
					}
				}
				yield(mark("gone", false), nil)
			}
		}
		return r.changes(ctx, since)
	}},
	steps("silence about what is no page", "entries that are not pages are reported", func(_ *millrace.Change, err *error) bool { return *err == nil }),
	steps("a page that fails is absent", "an unavailable page is kept", func(_ *millrace.Change, err *error) bool {
		var skip *millrace.SkipError
		if errors.As(*err, &skip) {
			skip.Absent = true
		}
		return true
	}),
	{name: "a site that is down is empty", finds: "an unavailable site is kept", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		if c, err := r.load(); err == nil && c.Down {
			return func(yield yield) { yield(mark("down", true), nil) }
		}
		return r.changes(ctx, since)
	}},
	{name: "a page is read in two steps", finds: "a site may change during a run", page: func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
		p, err := r.page(ctx, have)
		if err != nil {
			return p, err
		}
		time.Sleep(40 * time.Millisecond)
		q, err := r.page(ctx, millrace.Ref{URL: have.URL})
		if err == nil {
			p.Blocks = q.Blocks
		}
		return p, err
	}},
	{name: "yielding after the end", finds: "a consumer may stop anywhere", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		return func(yield yield) {
			for c, err := range r.changes(ctx, since) {
				yield(c, err)
			}
		}
	}},
	{name: "a goroutine for ever", finds: "a consumer may stop anywhere", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		return func(yield yield) {
			all := make(chan millrace.Change)
			go func() {
				defer close(all)
				for c := range r.changes(ctx, since) {
					all <- c
				}
			}()
			for c := range all {
				if !yield(c, nil) {
					return
				}
			}
		}
	}},
	{name: "deaf to its context", finds: "a stream ends with its context", changes: func(r *reader, ctx context.Context, since millrace.Cursor) seq {
		return r.changes(context.WithoutCancel(ctx), since)
	}},
	steps("ending in silence", "a stream ends with its context", func(_ *millrace.Change, err *error) bool {
		return !errors.Is(*err, context.Canceled)
	}),
	{name: "a page that is deaf to its context", finds: "a fetch ends with its context", page: func(r *reader, ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
		return r.page(context.WithoutCancel(ctx), have)
	}},
	pages("a context that ends is no page", "a fetch ends with its context", func(p *millrace.Page, err error) (*millrace.Page, error) {
		if errors.Is(err, context.Canceled) {
			err = millrace.ErrNotFound
		}
		return p, err
	}),
	{name: "the end is marked first", finds: "an interrupted run resumes", changes: early},
	{name: "the end is marked first, and killed", finds: "a killed run resumes", changes: early},
	{name: "the end is marked first, and canceled", finds: "a canceled run resumes", changes: early},
}

// early returns a stream that yields a complete checkpoint before its first page.
func early(r *reader, ctx context.Context, since millrace.Cursor) seq { //nolint:revive // the type of fault.changes
	return func(yield yield) {
		c, err := r.get(ctx)
		if err == nil && !yield(mark(cursor(c), false), nil) {
			return
		}
		for c, err := range r.changes(ctx, since) {
			if !yield(c, err) {
				return
			}
		}
	}
}

// faultyArg is the argument with which this test binary runs the suite with a fault.
const faultyArg = "origintest-faulty"

// TestFaults runs, for each fault, the case that must find it. The case runs in another process,
// because a failed test cannot be undone.
func TestFaults(t *testing.T) {
	for _, finds := range origintest.Cases() {
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.finds == finds }) {
			t.Errorf("no fault for %q", finds)
		}
	}
	for _, f := range faults {
		t.Run(name(f.name), func(t *testing.T) {
			t.Parallel()
			path := "TestFaulty/" + name(f.name) + "/" + name(f.finds)
			run := "^" + strings.ReplaceAll(path, "/", "$/^") + "$"
			out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.short", "-test.run="+run, faultyArg).CombinedOutput()
			var exit *exec.ExitError
			switch {
			case err == nil:
				t.Errorf("an origin with the fault %q passes %q:\n%s", f.name, f.finds, out)
			case !errors.As(err, &exit):
				t.Fatal(err)
			case !bytes.Contains(out, []byte("--- FAIL: "+path)):
				t.Errorf("%q does not find the fault %q, but fails:\n%s", f.finds, f.name, out)
			}
		})
	}
}

// TestFaulty runs the suite in the processes that TestFaults starts.
func TestFaulty(t *testing.T) {
	if args := flag.Args(); len(args) == 0 || args[0] != faultyArg {
		return
	}
	for _, f := range faults {
		t.Run(name(f.name), func(t *testing.T) { origintest.Run(t, origin(f)) })
	}
}
