package tct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"

	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

// reader01 is the source that a site in TCT draft-01 is.
type reader01 struct{ *tctReader }

// newReader01 reads the site at an endpoint, any URL of it; a nil client is the
// guarded default, nil options are the zero value. Changes starts from the
// root of the endpoint's origin. Page needs no list: without a Location it
// finds the page's document by the page's own links.
func newReader01(client *http.Client, endpoint string, o *protocol.ReaderOptions) *reader01 {
	return &reader01{draft01.NewReader(client, endpoint, o)}
}

// cursor01 is where the stream of a site stands: what was found by discovery
// and which state of each list has been applied.
type cursor01 struct {
	Root  string      `json:"root"`
	Found time.Time   `json:"found"` // when the root was last asked
	Lists []listState `json:"lists"` // in the order of the root's links
	// Missing are the targets of the root's links that were not there. One is
	// believed to be no list when it is missing twice.
	Missing []string `json:"missing,omitempty"`
}

func (c cursor01) encode() millrace.Cursor {
	if c.Root == "" {
		return "" // from the start
	}
	return kit.Cursor(c)
}

func (c cursor01) urls() []string {
	out := make([]string, len(c.Lists))
	for i, l := range c.Lists {
		out[i] = l.URL
	}
	return out
}

// Changes yields the items of every list that has changed. When the site's
// lists are those of the cursor, a milestone ends each of them; otherwise one
// ends them all, because no section of before says what has gone. Before those
// comes one that says to start over: whoever has applied only some of them holds
// pages of sections that no cursor knows.
func (r *reader01) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		if err := r.changes(ctx, since, yield); err != nil {
			yield(millrace.Change{}, err)
		}
	}
}

func (r *reader01) changes(ctx context.Context, since millrace.Cursor, yield func(millrace.Change, error) bool) error {
	if r.Err != nil {
		return r.Err
	}
	was := cursor01{Root: r.Root}
	if since != "" {
		if err := json.Unmarshal([]byte(since), &was); err != nil || was.Root != r.Root || len(was.Lists) == 0 {
			return fmt.Errorf("%s: the cursor is not one of %s: %w", name01, r.Root, millrace.ErrConflict)
		}
	}
	var files []*listFile
	defer func() { closeAll(files) }()
	now := r.Options.Now().UTC().Truncate(time.Second)
	is := was
	age := now.Sub(was.Found)
	remembered, whole := since != "" && age >= 0 && age < discoveryAge, false
	if remembered {
		var err error
		if files, _, whole, err = r.load(ctx, was.Lists, was); err != nil {
			if ctx.Err() != nil {
				return err
			}
			remembered = false // the lists may have moved
		}
	}
	if !remembered {
		found, _, err := r.discover(ctx)
		if err != nil {
			return err
		}
		if files, is.Missing, whole, err = r.load(ctx, found, was); err != nil {
			return err
		}
		is.Found = now
		if !whole {
			is.Found = time.Time{} // look for the others again next time
		}
	}
	// A list beside one that is missing may be older than the root that names
	// them: it is read again the next time, and settles then what is gone.
	lagging := slices.ContainsFunc(is.Missing, func(u string) bool { return !slices.Contains(was.Missing, u) })
	is.Lists = listsOf(files, lagging)
	if slices.Equal(is.urls(), was.urls()) {
		return r.yieldEach(ctx, files, whole, was, is, yield)
	}
	if slices.ContainsFunc(files, func(f *listFile) bool { return !f.Changed() }) {
		// A list among others than before says nothing by its 304 alone.
		closeAll(files)
		var err error
		if files, _, _, err = r.load(ctx, unconditional(is.Lists), cursor01{}); err != nil {
			return err
		}
		is.Lists = listsOf(files, lagging)
	}
	if since != "" && !yield(mark(cursor01{}, false, ""), nil) {
		return nil
	}
	return r.yieldAll(ctx, files, whole, is, yield)
}

// listsOf gives the lists of files, with their validators unless they are to be
// read again.
func listsOf(files []*listFile, again bool) []listState {
	out := make([]listState, len(files))
	for i, f := range files {
		out[i] = f.listState
	}
	if again {
		return unconditional(out)
	}
	return out
}

// unconditional gives the lists without their validators.
func unconditional(lists []listState) []listState {
	out := make([]listState, len(lists))
	for i, l := range lists {
		out[i] = listState{URL: l.URL}
	}
	return out
}

// yieldAll yields the items of all lists and one milestone.
func (r *reader01) yieldAll(
	ctx context.Context, files []*listFile, whole bool, is cursor01, yield func(millrace.Change, error) bool,
) error {
	for _, f := range files {
		if err := r.Items(ctx, f, sectionOf(f, files), yield); err != nil {
			return unlessStop(err)
		}
	}
	yield(mark(is, whole, ""), nil)
	return nil
}

// yieldEach yields the items of each list that has changed, with a milestone
// whose cursor covers what has been yielded up to it.
func (r *reader01) yieldEach(
	ctx context.Context, files []*listFile, whole bool, was, is cursor01, yield func(millrace.Change, error) bool,
) error {
	so := cursor01{Root: is.Root, Found: is.Found, Lists: slices.Clone(was.Lists), Missing: is.Missing}
	last := -1
	for i, f := range files {
		if !f.Changed() {
			so.Lists[i] = is.Lists[i]
		} else {
			last = i
		}
	}
	if last < 0 {
		yield(mark(is, false, ""), nil)
		return nil
	}
	for i, f := range files {
		if !f.Changed() {
			continue
		}
		if err := r.Items(ctx, f, sectionOf(f, files), yield); err != nil {
			return unlessStop(err)
		}
		so.Lists[i] = is.Lists[i]
		if !yield(mark(so, whole, sectionOf(f, files)), nil) {
			return nil
		}
	}
	return nil
}

// sectionOf returns the section of a list's pages: its URL, "" if it is the only list.
func sectionOf(f *listFile, files []*listFile) string {
	if len(files) > 1 {
		return f.URL
	}
	return ""
}

func unlessStop(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func mark(c cursor01, whole bool, section string) millrace.Change {
	return millrace.Change{
		Kind:       millrace.KindCheckpoint,
		Checkpoint: &millrace.Checkpoint{Cursor: c.encode(), Complete: whole, Section: section},
	}
}

// discover asks the origin's root for its lists (1.4.1), and says how many bytes
// that has taken.
func (r *reader01) discover(ctx context.Context) (found []listState, size int64, err error) {
	resp, err := r.Get(ctx, r.Root, map[string]string{"Accept": "text/html, */*;q=0.1"})
	if err != nil {
		return nil, size, fmt.Errorf("%s: discovery: %w", name01, err)
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, size, fmt.Errorf("%s: discovery: %w", name01, err)
	}
	size, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection lives
	for _, l := range weblink.Header(resp.Header, resp.Request.URL) {
		switch {
		case !l.Is("index", mediaType), slices.Contains(found, listState{URL: l.URL}):
		case resp.Request.URL.Scheme == "https" && strings.HasPrefix(l.URL, "http:"):
			r.Note("1.10/https", l.URL, "an http list of an https site is not read")
		default:
			found = append(found, listState{URL: l.URL})
		}
	}
	switch {
	case len(found) == 0:
		return nil, size, fmt.Errorf("%s: TCT is not deployed at %s: its root has no Link with rel=index and type=%s: %w",
			name01, r.Root, mediaType, millrace.ErrNotFound)
	case len(found) > maxLists:
		return nil, size, fmt.Errorf("%s: %s announces %d lists: %w", name01, r.Root, len(found), millrace.ErrTooLarge)
	}
	return found, size, nil
}
