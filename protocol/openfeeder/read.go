package openfeeder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/kit"
)

// ReaderOptions configure a reader. The zero value works.
type ReaderOptions struct {
	protocol.ReaderOptions
	// Compare is after how many replies of changes the whole index is read
	// again, of a site that does not tell of deletions, or has never told of
	// one; 0 = 10.
	Compare int
}

// reader is the source that a site in OpenFeeder is.
type reader struct {
	kit.Reader
	o         ReaderOptions
	probeCost *protocol.Cost // of what was got, by a reader that only looks; nil: it does not

	mu   sync.Mutex
	feed feed // that was found last; the zero value: none
	flat int  // answers in a row that were the index, where a page was asked for
}

// flatAfter is after how many indexes in place of pages a server is taken for a
// plain host, which has no pages to ask for.
const flatAfter = 3

// isFlat reports whether pages are not worth asking for.
func (r *reader) isFlat() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flat >= flatAfter
}

// answered notes what came where a page was asked for.
func (r *reader) answered(index bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flat++; !index {
		r.flat = 0
	}
}

// NewReader reads the site at an endpoint, any URL of it; a nil client is the
// guarded default, nil options are the zero value.
//
// Changes reads the index once, and from then on what has changed since the
// last token. Pages are asked for one by one. A server that has no tokens, or a
// feed of files, has its index read each time.
func NewReader(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source {
	return newReader(client, endpoint, o)
}

func newReader(client *http.Client, endpoint string, o *ReaderOptions) *reader {
	r := &reader{o: kit.Value(o)}
	r.Reader = kit.NewReader(Name, client, endpoint, &r.o.ReaderOptions)
	r.o.Compare = cmp.Or(r.o.Compare, 10)
	return r
}

// cursor is the position in the stream of a site.
type cursor struct {
	Root  string    `json:"root"`
	Found time.Time `json:"found"` // when the feed was last looked for
	Feed  feed      `json:"feed"`
	Token string    `json:"token,omitempty"` // everything before it has been applied; "" = the index is read
	// ETag is of the reply about Token, if that had nothing to tell.
	ETag string `json:"etag,omitempty"`
	// ReportsDeletions says that the site lists deletions. If it does not, Polls
	// counts the replies since the index was last compared.
	ReportsDeletions bool           `json:"reports_deletions,omitempty"`
	Polls            int            `json:"polls,omitempty"`
	Files            []kit.Resource `json:"files,omitempty"` // of the index of a static feed
	// AsOf is the time of Token, of a cursor of deletions.
	AsOf time.Time `json:"as_of,omitzero"`
}

// keptTombstones is how many deletions the specification recommends to keep
// (3.4): a reply with as many may be the end of a longer list.
const keptTombstones = 1000

// run is one reading of the stream.
type run struct {
	*reader
	kit.Yield
	was, is cursor
	named   bool // pages have been named that what comes next need not know of
}

var errResync = errors.New("the index must be read again") // the token is not enough

// Changes yields the pages of the index, or the changes since a cursor, and a
// checkpoint that covers all of them.
func (r *reader) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return kit.Stream(func(y kit.Yield) error { return r.changes(ctx, since, y) })
}

func (r *reader) changes(ctx context.Context, since millrace.Cursor, yield kit.Yield) error {
	run, now, err := r.begin(ctx, since, yield)
	if err != nil {
		return err
	}
	err = run.read(ctx)
	if err == nil || run.is.Found.Equal(now) || !errors.Is(err, millrace.ErrNotFound) {
		return err
	}
	// The endpoint may have moved.
	if moved, err := run.moved(ctx, now, err); !moved {
		return err
	}
	return run.read(ctx)
}

// begin starts a reading from a cursor, with the feed that is remembered, or
// that is found.
func (r *reader) begin(ctx context.Context, since millrace.Cursor, yield kit.Yield) (*run, time.Time, error) {
	now, run := r.Now(), &run{reader: r, Yield: yield}
	if err := r.Resume(since, &run.was, func() bool { return run.was.Root == r.Root && run.was.Feed.Endpoint != "" }); err != nil {
		return nil, now, err
	}
	run.is = run.was
	if !r.Remembers(run.was.Found) {
		f, err := r.discover(ctx)
		if err != nil {
			return nil, now, err
		}
		if run.is = (cursor{Root: r.Root, Found: now, Feed: f}); f == run.was.Feed {
			run.is = run.was
			run.is.Found = now
		}
	}
	r.remember(run.is.Feed)
	return run, now, nil
}

// moved looks for the feed again, which has not been where it was, and reports
// whether it is elsewhere now; else the error stands.
func (r *run) moved(ctx context.Context, now time.Time, lost error) (bool, error) {
	f, err := r.discover(ctx)
	if err != nil || f == r.is.Feed {
		return false, lost
	}
	r.is = cursor{Root: r.Root, Found: now, Feed: f}
	r.remember(f)
	return true, nil
}

func (r *reader) remember(f feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feed = f
}

// read reads what the site has in the way that it can tell it.
func (r *run) read(ctx context.Context) error {
	if r.is.Feed.Static {
		return r.static(ctx)
	}
	if r.is.Token != "" && (r.is.ReportsDeletions || r.is.Polls < r.o.Compare) {
		err := r.poll(ctx)
		if !errors.Is(err, errResync) {
			return err
		}
	}
	for range 3 {
		if err := r.whole(ctx, !r.named); !errors.Is(err, errResync) {
			return err
		}
	}
	return fmt.Errorf("%s: %s changes faster than it can be read: %w", Name, r.Root, millrace.ErrUnavailable)
}

// poll asks for what has changed since the cursor's token. Each page of a reply
// has a token that covers it.
func (r *run) poll(ctx context.Context) error {
	c := r.is
	c.Polls++
	err := r.since(ctx, c.Token, c.ETag, func(reply *changes, etag string) error {
		if reply == nil {
			return r.Mark(c, false, "")
		}
		s := &reply.Sync
		if s.DeletedTracking != nil && !*s.DeletedTracking && c.ReportsDeletions {
			return errResync
		}
		if len(reply.Deleted) > 0 && !c.ReportsDeletions {
			c.ReportsDeletions, c.Polls = true, 0
		}
		if err := r.put(ctx, reply); err != nil {
			return err
		}
		if len(reply.Deleted) == keptTombstones && s.Next == "" {
			return errResync // there may have been more
		}
		if c.ETag = ""; s.Next == "" && s.SyncToken == c.Token {
			c.ETag = etag
		}
		c.Token = s.SyncToken
		return r.Mark(c, false, "")
	})
	if gone(err) {
		return errResync
	}
	return err
}

// gone reports whether a server no longer knows the token that it has given.
func gone(err error) bool {
	e, ok := errors.AsType[*fetch.StatusError](err)
	return ok && (e.Code == http.StatusGone || e.Code == http.StatusBadRequest)
}

// put yields the changes of a page of a reply. What it lists is there, whatever
// has gone before.
func (r *run) put(ctx context.Context, reply *changes) error {
	listed := map[string]bool{}
	for _, items := range [][]item{reply.Added, reply.Updated} {
		for i := range items {
			if u, err := r.urlOf(items[i].URL); err == nil {
				listed[u] = true
			}
			if err := r.name(ctx, &items[i], ""); err != nil {
				return err
			}
		}
	}
	for _, gone := range reply.Deleted {
		u, err := r.urlOf(gone.URL)
		switch {
		case err != nil:
			r.Note("3.4/tombstone", r.is.Feed.Endpoint, err.Error())
		case !listed[u]:
			c := millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: u}, Time: parseTime(gone.DeletedAt)}
			if err := r.give(ctx, c, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// name yields a page that an item names; section is the file that has the item.
func (r *run) name(ctx context.Context, it *item, section string) error {
	u, err := r.urlOf(it.URL)
	ref := millrace.Ref{URL: u, Version: it.version(), Section: section}
	if err == nil && it.Document != "" && r.is.Feed.Static {
		ref.Location, err = r.documentAt(it.Document, r.is.Feed)
	}
	if err != nil {
		return r.give(ctx, millrace.Change{}, &millrace.SkipError{URL: cmp.Or(u, it.URL), Err: err})
	}
	r.named = true
	return r.give(ctx, millrace.Change{Kind: millrace.Put, Ref: ref}, nil)
}

func (r *run) give(ctx context.Context, c millrace.Change, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.Give(c, err)
}

// urlOf gives the URL of a page that the feed names.
func (r *run) urlOf(ref string) (string, error) { return r.is.Feed.url(r.Root, ref) }

// ask sends a GET, conditional if there are validators; the response's URL is
// that after redirects.
func (r *reader) ask(ctx context.Context, target string, have fetch.Validators, accept string) (*http.Response, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	resp, err := kit.Get(ctx, r.Client, http.MethodGet, target, kit.Accept(accept, have))
	if _, refused := errors.AsType[*fetch.RobotsError](err); refused && r.permitted(ctx, u) {
		return kit.Get(fetch.Permit(ctx, target), r.Client, http.MethodGet, target, kit.Accept(accept, have))
	}
	return resp, err
}

// got is a response whose body has been read.
type got struct {
	status int
	header http.Header
	url    *url.URL // after redirects
	size   int64    // of the body as it was sent, of what is only looked at
}

// get gets a JSON document whole. An error says what the server's own body says
// of it (8); with it, there may have been no response.
func (r *reader) get(ctx context.Context, target, etag string) (*got, []byte, error) {
	resp, err := r.ask(ctx, target, fetch.Validators{ETag: etag}, mediaType)
	if r.probeCost != nil {
		r.probeCost.Requests++
	}
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	head := &got{status: resp.StatusCode, header: resp.Header, url: resp.Request.URL}
	if err := fetch.CheckStatus(resp); err != nil {
		if errors.Is(err, millrace.ErrUnmodified) {
			return head, nil, err
		}
		body, _ := fetch.ReadBody(resp, maxFailure)
		if f, ok := decodeFailure(body); ok {
			err = fmt.Errorf("%w: %s: %s", err, kit.Short(f.Code), kit.Short(f.Message))
		} else if millrace.StatusErr(resp.StatusCode) != nil && resp.StatusCode != http.StatusNotFound {
			r.Note("8/error-body", target, fmt.Sprintf("%d without the error's body", resp.StatusCode))
		}
		return head, nil, err
	}
	if r.probeCost == nil {
		body, err := fetch.ReadBody(resp, pageLimits.Size)
		if err != nil {
			return nil, nil, err
		}
		return head, body, nil
	}
	b, err := fetch.ReadBeginning(resp, probeBytes)
	if err != nil {
		return nil, nil, err
	}
	if head.size = max(b.Size, b.Read); !b.Complete {
		return nil, nil, fmt.Errorf("%s: it is longer than the %d bytes that are looked at: %w", target, probeBytes, millrace.ErrTooLarge)
	}
	r.probeCost.Bytes += head.size
	return head, b.Content, nil
}

// maxFailure is what is read of an error's body, in bytes.
const maxFailure = 64 << 10

// unqueried returns the error of a reply that cannot be decoded. A host that
// ignores the query gives its index whatever is asked for.
func unqueried(err error, body []byte, target string) error {
	if x, _ := decodeIndex(body); x != nil {
		return errIgnored(target)
	}
	return kit.FormatURL(err, target)
}

// errIgnored is the error of a host that looks at no query.
func errIgnored(target string) error {
	return &millrace.FormatError{
		Protocol: Name, URL: target, Section: "3.1", Code: "query-ignored",
		Reason: "the host ignores the query and gives its index; read the site another way, or publish a feed of the type static",
	}
}
