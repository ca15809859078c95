package tct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

// cursor is a position in the stream of a site: the result of discovery, and the applied state of
// each list.
type cursor struct {
	Root  string         `json:"root"`
	Found time.Time      `json:"found"` // time of the last discovery of the lists or of the policy
	Lists []kit.Resource `json:"lists"` // lists in the order of the root's links
	// Missing contains the targets of the root's links that were not found. If a target is still
	// missing at the next discovery, its pages count as deleted.
	Missing []string `json:"missing,omitempty"`
}

func (c cursor) urls() []string {
	out := make([]string, len(c.Lists))
	for i, l := range c.Lists {
		out[i] = l.URL
	}
	return out
}

// Changes yields the items of every list that has changed. If the site's lists are those of the
// cursor, a checkpoint follows the items of each list. Otherwise, one checkpoint follows the items
// of all lists, because no earlier section shows which pages were deleted. In that case, unless
// since is empty, an initial checkpoint resets the client, because a client that has applied only
// some lists has pages of unknown sections.
func (r *tctReader) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return kit.Stream(func(y kit.Yield) error { return r.changes(ctx, since, y) })
}

func (r *tctReader) changes(ctx context.Context, since millrace.Cursor, y kit.Yield) error {
	was := cursor{Root: r.Root}
	if err := r.Resume(since, &was, func() bool { return was.Root == r.Root && len(was.Lists) > 0 }); err != nil {
		return err
	}
	var files []*listFile
	defer func() { closeAll(files) }()
	now, is := r.Now(), was
	var complete bool
	for remembered := r.IsFresh(was.Found); ; remembered = false {
		if !remembered && r.d.PolicyPath != "" {
			if err := begin(ctx, r); err != nil {
				return err
			}
		}
		found := was.Lists
		if !remembered || r.d.OneList {
			there, _, err := r.discover(ctx)
			if err != nil {
				return err
			}
			if found = there; r.d.OneList {
				found = slices.Concat(was.Lists, there)
			}
		}
		var missing []string
		var err error
		files, missing, complete, err = r.load(ctx, found, was)
		if err != nil && remembered && !r.d.OneList && ctx.Err() == nil {
			continue // the lists may have moved
		}
		if err != nil {
			return err
		}
		if !remembered {
			is.Missing, is.Found = missing, now
			if !complete {
				is.Found = time.Time{} // discover the others in the next run
			}
		}
		break
	}
	// If another list is newly missing, these lists may be older than the root that links to them.
	// Read them again in the next run; until then, missing pages do not count as deleted.
	lagging := slices.ContainsFunc(is.Missing, func(u string) bool { return !slices.Contains(was.Missing, u) })
	is.Lists = listsOf(files, lagging)
	if slices.Equal(is.urls(), was.urls()) {
		return r.yieldEach(ctx, files, complete, was, is, y)
	}
	if slices.ContainsFunc(files, func(f *listFile) bool { return !f.Changed() }) {
		// If the set of lists has changed, a 304 for one list is not sufficient.
		closeAll(files)
		var err error
		if files, _, _, err = r.load(ctx, unconditional(is.Lists), cursor{}); err != nil {
			return err
		}
		is.Lists = listsOf(files, lagging)
	}
	if since != "" {
		if err := y.Checkpoint(cursor{}, false, ""); err != nil {
			return err
		}
	}
	return r.yieldAll(ctx, files, complete, is, y)
}

// listsOf returns the lists of files, with their validators unless the lists must be read again.
func listsOf(files []*listFile, again bool) []kit.Resource {
	out := make([]kit.Resource, len(files))
	for i, f := range files {
		out[i] = f.Resource
	}
	if again {
		return unconditional(out)
	}
	return out
}

// unconditional returns the lists without their validators.
func unconditional(lists []kit.Resource) []kit.Resource {
	out := make([]kit.Resource, len(lists))
	for i, l := range lists {
		out[i] = kit.Resource{URL: l.URL}
	}
	return out
}

// yieldAll yields the items of all lists and then one checkpoint.
func (r *tctReader) yieldAll(ctx context.Context, files []*listFile, complete bool, is cursor, y kit.Yield) error {
	for _, f := range files {
		if err := r.Items(ctx, f, sectionOf(f, files), y); err != nil {
			return err
		}
	}
	return y.Checkpoint(is, complete, "")
}

// yieldEach yields the items of each list that has changed, each list followed by a checkpoint that
// covers all items so far.
func (r *tctReader) yieldEach(ctx context.Context, files []*listFile, complete bool, was, is cursor, y kit.Yield) error {
	so := cursor{Root: is.Root, Found: is.Found, Lists: slices.Clone(was.Lists), Missing: is.Missing}
	last := -1
	for i, f := range files {
		if !f.Changed() {
			so.Lists[i] = is.Lists[i]
		} else {
			last = i
		}
	}
	if last < 0 {
		return y.Checkpoint(is, false, "")
	}
	for i, f := range files {
		if !f.Changed() {
			continue
		}
		if err := r.Items(ctx, f, sectionOf(f, files), y); err != nil {
			return err
		}
		so.Lists[i] = is.Lists[i]
		if err := y.Checkpoint(so, complete, sectionOf(f, files)); err != nil {
			return err
		}
	}
	return nil
}

// sectionOf returns the section of a list's pages: the URL of the list, or "" if it is the only
// list.
func sectionOf(f *listFile, files []*listFile) string {
	if len(files) > 1 {
		return f.URL
	}
	return ""
}

func closeAll(files []*listFile) {
	for _, f := range files {
		f.Close()
	}
}

// load fetches the lists, and returns those that are complete and valid, or unchanged since the
// cursor was. It skips targets that are not an M-Sitemap, unless was contains them. If no list
// remains, it returns an error. complete is false if a list is forbidden, or is missing for the
// first time, as on an outdated replica: pages that are in no other list may be in that list.
func (r *tctReader) load(ctx context.Context, lists []kit.Resource, was cursor) (files []*listFile, missing []string, complete bool, err error) {
	complete = true
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	var other error
	tried := map[string]bool{}
	named := len(lists) // later lists come from an index
	for i := 0; i < len(lists); i++ {
		l := lists[i]
		if tried[l.URL] {
			continue
		}
		tried[l.URL] = true
		known := false
		for _, w := range was.Lists {
			if w.URL == l.URL {
				l, known = w, true
			}
		}
		f, err := r.loadOne(ctx, l)
		switch {
		case err == nil:
			if files = append(files, f); r.d.OneList {
				return files, nil, true, nil
			}
		case i < named && listsIn(err, l.URL) != nil:
			lists = append(slices.Clip(lists), listsIn(err, l.URL)...)
		case known && !r.d.OneList || !isOtherDocument(err):
			return files, nil, false, err
		default:
			if errors.Is(err, millrace.ErrNotFound) {
				missing = append(missing, l.URL)
				complete = complete && slices.Contains(was.Missing, l.URL)
			}
			complete = complete && !errors.Is(err, millrace.ErrForbidden)
			other = cmp.Or(other, err)
		}
	}
	if len(files) == 0 {
		return nil, nil, false, r.noList(other)
	}
	return files, missing, complete, nil
}

// noList returns the error for a site without a list.
func (r *tctReader) noList(other error) error {
	its, draft := errors.AsType[*draftError](other)
	switch {
	case draft && its.Draft <= "draft-"+lastDraft: // another protocol of this package reads it
		return fmt.Errorf("%s: TCT %w at %s: %v", r.d.Name, millrace.ErrNotFound, r.Root, other) //nolint:errorlint // do not wrap ErrInvalid
	case !r.d.OneList || draft || errors.Is(other, millrace.ErrForbidden):
		return other
	}
	return fmt.Errorf("%s: TCT %w at %s: %w", r.d.Name, millrace.ErrNotFound, r.Root, other)
}

// loadOne fetches one list, conditionally if validators are stored (6.2; 1.8.1).
func (r *tctReader) loadOne(ctx context.Context, l kit.Resource) (*listFile, error) {
	resp, err := r.GetList(kit.Download(ctx, r.Options.MaxList), l)
	if err != nil {
		return nil, err
	}
	if resp == nil {
		return &listFile{Resource: l}, nil
	}
	defer resp.Body.Close()
	f, err := r.ReadList(resp, l.URL)
	if err != nil {
		return nil, r.announced(err)
	}
	_ = resp.Body.Close() // keep only one response open
	if r.d.PolicyPath != "" {
		if err := described(ctx, r, resp); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// announced adds ErrInvalid to the error for a document that the root announces as a list although
// it is not one. It returns other errors unchanged.
func (r *tctReader) announced(err error) error {
	if errors.Is(err, errNoList) && !r.d.OneList {
		return fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	return err
}
