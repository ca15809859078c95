package tct00

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/recent"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/protocol"
)

// ReaderOptions configure a reader. The zero value works.
type ReaderOptions struct {
	protocol.ReaderOptions
	Now func() time.Time // nil = time.Now
}

// discoveryAge is how long it is remembered where the list is, and what the
// policy says.
const discoveryAge = 24 * time.Hour

// Reader is the source that a site in TCT draft-00 is. It is safe for
// concurrent use.
type Reader struct {
	client *http.Client
	root   string // of the endpoint's origin
	folder string // of the endpoint
	err    error  // of the endpoint
	o      ReaderOptions
	listed recent.Values

	mu    sync.Mutex
	terms terms
}

// NewReader reads the site at an endpoint, any URL of it; a nil client is the
// guarded default, nil options are the zero value. Changes looks for the list
// at the root of the endpoint's origin, then in the folder of the endpoint.
// Page needs no list: without a Location it finds the page's document by the
// page's own links.
func NewReader(client *http.Client, endpoint string, o *ReaderOptions) *Reader {
	if client == nil {
		client = fetch.New(nil).HTTP()
	}
	r := &Reader{}
	if o != nil {
		r.o = *o
	}
	r.client = fetch.WithKeys(client, r.o.Key)
	r.o.MaxList = cmp.Or(r.o.MaxList, 100<<20) // 9.3
	if r.o.Note == nil {
		r.o.Note = func(protocol.Note) {}
	}
	if r.o.Now == nil {
		r.o.Now = time.Now
	}
	if endpoint, r.err = canon.URL(endpoint); r.err != nil {
		r.err = fmt.Errorf("%s: %w: %w", Name, r.err, millrace.ErrInvalid)
	}
	r.root = canon.Origin(endpoint) + "/"
	path, _ := docname.CutQuery(endpoint)
	r.folder = path[:strings.LastIndexByte(path, '/')+1]
	return r
}

// cursor is where the stream of a site stands: which state of the list has
// been applied, and when the site was last looked at as if for the first time.
type cursor struct {
	Root  string    `json:"root"`
	Found time.Time `json:"found"`
	List  list      `json:"list"`
}

// list is the list with its validators, verbatim.
type list struct {
	URL      string `json:"url"`
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

func (c cursor) encode() millrace.Cursor {
	b, err := json.Marshal(c)
	if err != nil {
		panic("tct00: strings and a time do not encode: " + err.Error())
	}
	return millrace.Cursor(b)
}

// Changes yields the items of the list, if it has changed, and a milestone. A
// site without a list is ErrNotFound. Before anything else, unless that was
// done in the last 24 hours, it gets the policy (7.3); see [Reader.Policy].
func (r *Reader) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		if err := r.changes(ctx, since, yield); err != nil && !errors.Is(err, errStop) {
			yield(millrace.Change{}, err)
		}
	}
}

// errStop is a consumer that wants no more.
var errStop = errors.New("stopped")

func (r *Reader) changes(ctx context.Context, since millrace.Cursor, yield func(millrace.Change, error) bool) error {
	if r.err != nil {
		return r.err
	}
	was := cursor{Root: r.root}
	if since != "" {
		if err := json.Unmarshal([]byte(since), &was); err != nil || was.Root != r.root || was.List.URL == "" {
			return fmt.Errorf("%s: the cursor is not one of %s: %w", Name, r.root, millrace.ErrConflict)
		}
	}
	now := r.o.Now().UTC().Truncate(time.Second)
	is := was
	if age := now.Sub(was.Found); since == "" || age < 0 || age >= discoveryAge {
		is.Found = now
		_, err := r.Policy(ctx)
		if err = r.heed(ctx, r.root, err); err != nil {
			return err
		}
	}
	f, err := r.load(ctx, was.List)
	if err != nil {
		return err
	}
	defer f.close()
	is.List = f.list
	if f.spool != nil {
		if err := r.items(ctx, f, yield); err != nil {
			return err
		}
	}
	yield(millrace.Change{
		Kind: millrace.Mark, Mark: &millrace.Milestone{Cursor: is.encode(), Whole: f.spool != nil},
	}, nil)
	return nil
}

// load gets the list that is remembered, and looks for one where it may be if
// there is none, or if that one is no list any more.
func (r *Reader) load(ctx context.Context, was list) (f *listFile, err error) {
	err = r.find(was, func(l list) (err error) {
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
func (r *Reader) find(was list, try func(list) error) error {
	var first error
	if was.URL != "" {
		err := try(was)
		if err == nil || !isOther(err) {
			return err
		}
		first = err
	}
	for _, at := range r.places(listName) {
		if at == was.URL {
			continue
		}
		err := try(list{URL: at})
		if err == nil || !isOther(err) {
			return err
		}
		first = cmp.Or(first, err)
	}
	if _, other := errors.AsType[*tct.DraftError](first); other || errors.Is(first, millrace.ErrForbidden) {
		return first
	}
	return fmt.Errorf("%s: TCT is not deployed at %s: %w: %w", Name, r.root, first, millrace.ErrNotFound)
}

// places gives the URLs where a document may be that a site has once.
func (r *Reader) places(name string) []string {
	out := []string{strings.TrimSuffix(r.root, "/") + name}
	if r.folder != r.root {
		out = append(out, strings.TrimSuffix(r.folder, "/")+name)
	}
	return out
}

// get sends a request with what the fields say and gives the response, whose
// URL is that after redirects.
func (r *Reader) get(ctx context.Context, target string, fields map[string]string) (*http.Response, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	req := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	for k, v := range fields {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	resp, err := fetch.Do(ctx, r.client, req)
	if err != nil {
		return nil, err
	}
	if resp.Request == nil {
		resp.Request = req
	}
	return resp, nil
}
