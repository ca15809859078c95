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
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// ReaderOptions are the options of the OpenFeeder reader. The zero value is ready to use.
type ReaderOptions struct {
	protocol.ReaderOptions
	// Compare is the number of sync replies after which the whole index is read again, if the site
	// does not report deletions or has not reported any yet. If zero, 10.
	Compare int
}

// reader is the source that reads a site over OpenFeeder.
type reader struct {
	kit.Reader
	o         ReaderOptions
	probeCost *protocol.Cost // cost of the requests so far, if the reader is a probe; else nil

	mu      sync.Mutex
	feed    feed // last feed found; zero = not discovered yet
	ignored int  // number of consecutive page requests that returned the index
}

// ignoredAfter is the number of consecutive page requests for which the server returns the index,
// after which the reader assumes a static host, which returns no pages.
const ignoredAfter = 3

// ignoresQueries reports whether the server ignores queries, so pages cannot be requested.
func (r *reader) ignoresQueries() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ignored >= ignoredAfter
}

// answered records whether a page request returned the index.
func (r *reader) answered(index bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ignored++; !index {
		r.ignored = 0
	}
}

// NewReader returns a source that reads a site. endpoint may be any URL of the site. A nil client
// means the guarded default client. Nil options mean the zero value.
//
// Changes reads the index once, and after that the changes since the last token. For a server
// without tokens, and for a static feed, it reads the index every time. Changes yields no content;
// Page fetches the pages one by one.
func NewReader(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source {
	return newReader(client, endpoint, o)
}

func newReader(client *http.Client, endpoint string, o *ReaderOptions) *reader {
	r := &reader{o: kit.Value(o)}
	r.Reader = kit.NewReader(Name, client, endpoint, &r.o.ReaderOptions)
	r.o.Compare = cmp.Or(r.o.Compare, 10)
	return r
}

// cursor is a position in the stream of a site.
type cursor struct {
	Root  string    `json:"root"`
	Found time.Time `json:"found"` // time of the last discovery
	Feed  feed      `json:"feed"`
	Token string    `json:"token,omitempty"` // token up to which all changes were applied; "" = the next run reads the index
	// ETag is the ETag of the reply to Token, if that reply contained no changes.
	ETag string `json:"etag,omitempty"`
	// ReportsDeletions reports whether the site lists deletions. If not, Polls counts the replies
	// since the whole index was last compared.
	ReportsDeletions bool           `json:"reports_deletions,omitempty"`
	Polls            int            `json:"polls,omitempty"`
	Files            []kit.Resource `json:"files,omitempty"` // index files of a static feed
}

// recommendedTombstones is the number of deletions that servers should keep according to the
// specification (3.4). A reply with this many may be incomplete.
const recommendedTombstones = 1000

// run is one call of Changes.
type run struct {
	*reader
	kit.Yield
	was, is cursor
	named   bool // whether this run has yielded pages
}

var errResync = errors.New("the index must be read again") // the token is not sufficient

// Changes yields the pages of the index or the changes since a cursor, with checkpoints that cover
// them.
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

// begin starts a read from a cursor, with the cached feed or after discovery.
func (r *reader) begin(ctx context.Context, since millrace.Cursor, yield kit.Yield) (*run, time.Time, error) {
	now, run := r.Now(), &run{reader: r, Yield: yield}
	if err := r.Resume(since, &run.was, func() bool { return run.was.Root == r.Root && run.was.Feed.Endpoint != "" }); err != nil {
		return nil, now, err
	}
	run.is = run.was
	if !r.IsFresh(run.was.Found) {
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

// moved discovers the feed again after a request failed with the error lost, and reports whether
// the feed has moved. If the feed has not moved, moved returns lost.
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

// read reads the site in the best way that the site supports.
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
		if err := r.readIndex(ctx, !r.named); !errors.Is(err, errResync) {
			return err
		}
	}
	return fmt.Errorf("%s: %s: the site changes faster than it can be read: %w", Name, r.Root, millrace.ErrUnavailable)
}

// poll requests the changes since the cursor's token. Each page of a reply contains a token for the
// position after it.
func (r *run) poll(ctx context.Context) error {
	c := r.is
	c.Polls++
	err := r.since(ctx, c.Token, c.ETag, func(reply *changes, etag string) error {
		if reply == nil {
			return r.Checkpoint(c, false, "")
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
		if len(reply.Deleted) == recommendedTombstones && s.Next == "" {
			return errResync // the list of deletions may be incomplete
		}
		if c.ETag = ""; s.Next == "" && s.SyncToken == c.Token {
			c.ETag = etag
		}
		c.Token = s.SyncToken
		return r.Checkpoint(c, false, "")
	})
	if gone(err) {
		return errResync
	}
	return err
}

// gone reports whether a server no longer accepts its own token.
func gone(err error) bool {
	e, ok := errors.AsType[*fetch.StatusError](err)
	return ok && (e.Code == http.StatusGone || e.Code == http.StatusBadRequest)
}

// put yields the changes in a page of a reply. A listed page exists, even if the reply also has a
// tombstone for it.
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

// name yields the page of an item. section becomes the Ref.Section of the change.
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
	return r.Send(c, err)
}

// urlOf resolves the URL of a page in the feed.
func (r *run) urlOf(ref string) (string, error) { return r.is.Feed.url(r.Root, ref) }

// ask sends a GET request, which is conditional if there are validators. The Request of the
// response has the URL after redirects.
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

// got is a response whose body was read.
type got struct {
	status int
	header http.Header
	url    *url.URL // URL after redirects
	size   int64    // bytes of the body as transferred, during a probe
}

// get fetches a complete JSON document. Its errors contain the server's error message (8).
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
			r.Note("8/error-body", target, fmt.Sprintf("status %d without an error body", resp.StatusCode))
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
		return nil, nil, fmt.Errorf("%s: longer than %d bytes, the limit of a probe: %w", target, probeBytes, millrace.ErrTooLarge)
	}
	r.probeCost.Bytes += head.size
	return head, b.Content, nil
}

// maxFailure is the maximum number of bytes that are read from the body of an error response.
const maxFailure = 64 << 10

// ignoredQuery returns the error for a reply that cannot be decoded. A host that ignores queries
// returns its index for every request.
func ignoredQuery(err error, body []byte, target string) error {
	if x, _ := decodeIndex(body); x != nil {
		return errIgnored(target)
	}
	return kit.FormatURL(err, target)
}

// errIgnored returns the error for a host that ignores queries.
func errIgnored(target string) error {
	return &millrace.FormatError{
		Protocol: Name, URL: target, Section: "3.1", Code: "query-ignored",
		Reason: "the host ignores the query and returns its index; read the site another way, or publish a static feed",
	}
}
