package simulation

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/millrace/millrace"
)

// entry is the origin's entry for a name.
type entry struct {
	url      string // identity of the page; the name itself unless it was renamed
	rev      int
	alias    bool // only maps the name to the page's real name
	noIndex  bool
	archive  bool
	modified time.Time // zero = the origin has no date
}

// page returns the page of an entry. It depends only on the fields of the entry.
func (e entry) page() *millrace.Page {
	p := &millrace.Page{URL: e.url, Version: e.version()}
	if e.alias {
		return p
	}
	p.Title = fmt.Sprintf("Page %s, state %d", e.url, e.rev)
	p.Description = fmt.Sprintf("State %d.", e.rev)
	p.Language = []string{"en", "de", ""}[e.rev%3]
	p.Section = []string{"news", "docs"}[len(e.url)%2]
	p.Access.NoIndex = e.noIndex
	if e.archive {
		p.Kind = millrace.Archive
	}
	p.Blocks = []millrace.Block{
		{Type: millrace.HeadingBlock, Level: 2, Text: "On state " + strconv.Itoa(e.rev)},
		{Type: millrace.TextBlock, Text: fmt.Sprintf("This is what %s says. Its number is %d.", e.url, e.rev*7919)},
	}
	p.Detail = millrace.DetailBlocks
	p.Known = millrace.AllFields &^ (millrace.FieldModified | millrace.FieldExtra)
	if !e.modified.IsZero() {
		p.Modified = e.modified
		p.Known |= millrace.FieldModified
	}
	return p
}

func (e entry) version() string { return fmt.Sprintf("%s %d", e.url, e.rev) }

// origin is the source of most pages: a folder in memory, which names pages by their
// paths.
type origin struct {
	mu        sync.Mutex
	rng       *rand.Rand
	entries   map[string]entry
	rev       int
	undeleted map[string]entry // deleted entries that a broken source still lists
}

func newOrigin(rng *rand.Rand) *origin {
	o := &origin{rng: rng, entries: make(map[string]entry), undeleted: make(map[string]entry)}
	for _, name := range []string{"/", "/a", "/a/", "/a/b.html", "/h1/x/", "/h2/y/", "/q?x=1", "/%C3%BCber/"} {
		o.put(name)
	}
	for range 12 {
		o.put(o.fresh())
	}
	return o
}

func (o *origin) put(name string) {
	o.rev++
	o.entries[name] = entry{url: name, rev: o.rev}
}

// fresh returns an unused name.
func (o *origin) fresh() string {
	for {
		dir := []string{"", "/news", "/docs/deep", "/h1", "/h2", "/a"}[o.rng.IntN(6)]
		name := fmt.Sprintf("%s/%d%s", dir, o.rng.IntN(60), []string{"", "/", ".html"}[o.rng.IntN(3)])
		if !o.taken(name) {
			return name
		}
	}
}

func (o *origin) taken(url string) bool {
	_, ok := o.entries[url]
	for _, e := range o.entries {
		ok = ok || e.url == url
	}
	return ok
}

// change makes one change to the site, and returns its description.
func (o *origin) change() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	names := slices.Sorted(maps.Keys(o.entries))
	name := names[o.rng.IntN(len(names))]
	e := o.entries[name]
	o.rev++
	e.rev = o.rev
	what := "edit"
	switch p := o.rng.IntN(20); {
	case len(names) < 12, p < 4 && len(names) < 40:
		name = o.fresh()
		e = entry{url: name, rev: o.rev}
		what = "add"
	case p < 7:
		delete(o.entries, name)
		o.undeleted[name] = e
		return "delete " + name
	case p < 8: // another file name
		delete(o.entries, name)
		name = o.fresh()
		if !e.alias {
			e.url = name
		}
		what = "move to"
	case p < 9 && !e.alias: // another canonical URL under the same file name
		e.url = o.fresh()
		what = "rename to " + e.url
	case p < 10 && !e.alias:
		e.noIndex = !e.noIndex
		what = fmt.Sprint("noindex=", e.noIndex)
	case p < 11 && !e.alias:
		e.archive = !e.archive
		what = fmt.Sprint("archive=", e.archive)
	case p < 12 && !e.alias:
		e.modified = time.Now().Add(time.Duration(o.rng.IntN(7200)-5400) * time.Second).UTC().Truncate(time.Second)
		what = "date"
	case p < 13:
		target := e.url
		name = o.fresh()
		e = entry{url: target, rev: o.rev, alias: true}
		what = "alias of " + target + ":"
	}
	o.entries[name] = e
	delete(o.undeleted, name)
	return what + " " + name
}

// want returns the pages that a site with this content shows, by identity. In a store,
// one page may have had several names; the origin gives every page one.
func (o *origin) want() map[string]*millrace.Page {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make(map[string]*millrace.Page)
	for _, e := range o.entries {
		if !e.alias {
			out[e.url] = e.page()
		}
	}
	return out
}

// source is one scan of the origin, with its faults.
type source struct {
	*origin
	w      *world
	l      *process
	faulty bool
}

// Changes lists every page in no particular order.
func (s source) Changes(ctx context.Context, _ millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		s.mu.Lock()
		entries := maps.Clone(s.entries)
		if s.w.broken.dropDeletion {
			maps.Copy(entries, s.undeleted)
		}
		s.mu.Unlock()
		names := slices.Collect(maps.Keys(entries))
		sortAndShuffle(s.l.rng, names)
		for _, name := range names {
			var err error
			switch {
			case s.faulty && s.w.chance(s.l.rng, .005):
				yield(millrace.Change{}, fmt.Errorf("the origin is down: %w", millrace.ErrUnavailable))
				return
			case s.faulty && s.w.chance(s.l.rng, .02):
				err = &millrace.SkipError{URL: name, Err: millrace.ErrForbidden}
			}
			if !yield(millrace.Change{Ref: millrace.Ref{URL: name, Version: entries[name].version()}}, err) {
				return
			}
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Complete: true}}, nil)
	}
}

// Page returns the current version of a page, which may be newer than the listed one.
func (s source) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	s.l.work(ctx, 1)
	if s.faulty && s.w.chance(s.l.rng, .2) {
		sleep(ctx, 50*time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[have.URL]
	if z, found := s.undeleted[have.URL]; !ok && found && s.w.broken.dropDeletion {
		e, ok = z, true
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: %w", have.URL, millrace.ErrNotFound)
	case have.Version == e.version():
		return nil, millrace.ErrUnmodified
	}
	return e.page(), nil
}

func sortAndShuffle(rng *rand.Rand, s []string) {
	slices.Sort(s)
	rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}
