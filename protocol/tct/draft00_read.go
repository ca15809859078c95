package tct

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/internal/kit"

	"github.com/millrace/millrace/protocol"
)

// reader00 is the source that a site in TCT draft-00 is. Policy gives what the site's
// policy descriptor says (7). It is safe for concurrent use.
type reader00 struct {
	*tctReader
	policy kit.Policy
}

// newReader00 reads the site at an endpoint, any URL of it; a nil client is the
// guarded default, nil options are the zero value. Changes looks for the list
// at the root of the endpoint's origin, then in the folder of the endpoint.
// Page needs no list: without a Location it finds the page's document by the
// page's own links.
func newReader00(client *http.Client, endpoint string, o *protocol.ReaderOptions) *reader00 {
	return &reader00{tctReader: draft00.NewReader(client, endpoint, o)}
}

// cursor00 is where the stream of a site stands: which state of the list has
// been applied, and when the site was last looked at as if for the first time.
type cursor00 struct {
	Root  string    `json:"root"`
	Found time.Time `json:"found"`
	List  listState `json:"list"`
}

func (c cursor00) encode() millrace.Cursor { return kit.Cursor(c) }

// Changes yields the items of the list, if it has changed, and a milestone. A
// site without a list is ErrNotFound. Before anything else, unless that was
// done in the last 24 hours, it gets the policy (7.3); see Policy.
func (r *reader00) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		if err := r.changes(ctx, since, yield); err != nil && !errors.Is(err, errStop) {
			yield(millrace.Change{}, err)
		}
	}
}

func (r *reader00) changes(ctx context.Context, since millrace.Cursor, yield func(millrace.Change, error) bool) error {
	if r.Err != nil {
		return r.Err
	}
	was := cursor00{Root: r.Root}
	if since != "" {
		if err := json.Unmarshal([]byte(since), &was); err != nil || was.Root != r.Root || was.List.URL == "" {
			return fmt.Errorf("%s: the cursor is not one of %s: %w", name00, r.Root, millrace.ErrConflict)
		}
	}
	now := r.Options.Now().UTC().Truncate(time.Second)
	is := was
	if age := now.Sub(was.Found); since == "" || age < 0 || age >= discoveryAge {
		is.Found = now
		_, err := r.Policy(ctx)
		if err = r.heed(ctx, r.Root, err); err != nil {
			return err
		}
	}
	f, err := r.load(ctx, was.List)
	if err != nil {
		return err
	}
	defer f.Close()
	is.List = f.listState
	if f.Changed() {
		if err := r.Items(ctx, f, "", yield); err != nil {
			return err
		}
	}
	yield(millrace.Change{
		Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: is.encode(), Complete: f.Changed()},
	}, nil)
	return nil
}

// load gets the list that is remembered, and looks for one where it may be if
// there is none, or if that one is no list any more.
func (r *reader00) load(ctx context.Context, was listState) (f *listFile, err error) {
	err = r.find(was, func(l listState) (err error) {
		f, err = r.loadOne(ctx, l)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// find tries the list that is remembered, then where one may be, until one is
// there.
func (r *reader00) find(was listState, try func(listState) error) error {
	var first error
	if was.URL != "" {
		err := try(was)
		if err == nil || !isOther(err) {
			return err
		}
		first = err
	}
	for _, at := range r.places(listName00) {
		if at == was.URL {
			continue
		}
		err := try(listState{URL: at})
		if err == nil || !isOther(err) {
			return err
		}
		first = cmp.Or(first, err)
	}
	if _, other := errors.AsType[*draftError](first); other || errors.Is(first, millrace.ErrForbidden) {
		return first
	}
	return fmt.Errorf("%s: TCT %w at %s: %w", name00, millrace.ErrNotFound, r.Root, first)
}

// places gives the URLs where a document may be that a site has once.
func (r *reader00) places(name string) []string {
	out := []string{strings.TrimSuffix(r.Root, "/") + name}
	path, _ := docname.CutQuery(r.Endpoint)
	if folder := path[:strings.LastIndexByte(path, '/')]; folder+"/" != r.Root {
		out = append(out, folder+name)
	}
	return out
}
