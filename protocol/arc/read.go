package arc

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/recent"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
)

// ReaderOptions configures a reader. The zero value is valid.
type ReaderOptions struct {
	protocol.ReaderOptions
	// Deltas is the minimum size in bytes of a list for which deltas are read instead of the list
	// (E.8). If zero, 64 KiB. If negative, every list is read in full.
	Deltas int64
}

// readHorizon is a maximum age in days. Deltas are read instead of the list only if the last day
// read, and the last full read of the list, are not older.
const readHorizon = 30

// reader is the source of a site with an ARC sitemap. It is safe for concurrent use.
type reader struct {
	kit.Reader
	plain  *http.Client // client without keys
	folder string       // folder of the endpoint
	o      ReaderOptions
	listed recent.Values
	pace   pace
	policy kit.Policy
}

// NewReader returns a source that reads the site at an endpoint. The endpoint is any URL of the
// site. A nil client means the guarded default client. Nil options mean the zero value.
//
// If the list has a snapshot of a page, Changes yields the page with the content of the snapshot.
// Other pages are fetched from their own URLs, at most at the rate that the list allows (E.7), and
// again when their entry in the list changes. The reader skips pages of other origins, and pages
// that the list, the page or robots.txt forbids agents to read.
func NewReader(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source {
	return newReader(client, endpoint, o)
}

func newReader(client *http.Client, endpoint string, o *ReaderOptions) *reader {
	r := &reader{o: kit.Value(o)}
	r.Reader = kit.NewReader(Name, client, endpoint, &r.o.ReaderOptions)
	r.policy = kit.Policy{
		Reader: &r.Reader, URLs: []string{strings.TrimSuffix(r.Root, "/") + pathPolicy}, Types: "application/json", Limit: policy.MaxSize,
		Names: policy.ARCNames, Decode: decodePolicy,
	}
	r.plain = cmp.Or(client, r.Client)
	r.o.MaxList = cmp.Or(r.o.MaxList, 100<<20)
	r.o.Deltas = cmp.Or(r.o.Deltas, 64<<10)
	path, _, _ := strings.Cut(r.Endpoint, "?")
	r.folder = path[:strings.LastIndexByte(path, '/')+1]
	return r
}

// cursor is a position in the stream of a site.
type cursor struct {
	Root     string       `json:"root"`
	Found    time.Time    `json:"found"`          // time of the last discovery
	Home     string       `json:"home,omitempty"` // origin to which the home page redirected, if it was fetched
	List     kit.Resource `json:"list"`
	FullRead time.Time    `json:"full_read"`           // time of the last full read of the list
	Bytes    int64        `json:"bytes,omitempty"`     // size of the list at that time
	Seen     time.Time    `json:"seen"`                // generation time of the last applied list or delta
	NoDeltas bool         `json:"no_deltas,omitempty"` // the site has no deltas
}

var errFullRead = errors.New("the whole list must be read") // the deltas do not contain all changes of the list

// Changes yields the pages of a changed list, or of its deltas since the last day read (E.8), and
// then a checkpoint. If the site has no list, the error is ErrNotFound. At most once in 24 hours,
// Changes first fetches the policy (E.6); see [protocol.PolicyReader].
func (r *reader) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return kit.Stream(func(y kit.Yield) error { return (&run{reader: r, Yield: y}).changes(ctx, since) })
}

// run is one read of the stream.
type run struct {
	*reader
	kit.Yield
	is     cursor
	robots map[string]*fetch.Robots // robots.txt by origin
}

func (r *run) changes(ctx context.Context, since millrace.Cursor) error {
	if err := r.Resume(since, &r.is, func() bool { return r.is.Root == r.Root && r.is.List.URL != "" }); err != nil {
		return err
	}
	r.is.Root = r.Root
	now := r.Now()
	if !r.IsFresh(r.is.Found) {
		r.is.Found, r.is.NoDeltas = now, false
		_, err := r.Policy(ctx)
		if err = r.policy.NoteOrRefuse(ctx, r.policy.URLs[0], err); err != nil {
			return err
		}
	}
	if r.catchesUp(now) {
		if err := r.catchUp(ctx, now); !errors.Is(err, errFullRead) {
			return err
		}
	}
	f, err := r.load(ctx, r.is.List)
	if err != nil {
		return err
	}
	defer f.close()
	r.is.List = f.Resource
	if f.spool == nil {
		return r.Checkpoint(r.is, false, "")
	}
	r.applyRate(f)
	seen := past(parseTime(f.head.Generated), now)
	if seen.Format(time.DateOnly) != r.is.Seen.Format(time.DateOnly) {
		r.is.NoDeltas = false // the deltas of another day may exist
	}
	r.is.FullRead, r.is.Bytes, r.is.Seen = now, f.bytes, seen
	if err := r.pages(ctx, f, false); err != nil {
		return err
	}
	return r.Checkpoint(r.is, true, "")
}

// applyRate applies the crawl rate of a document (E.7), or the rate of the policy if that is
// slower.
func (r *run) applyRate(f *listFile) {
	gap := time.Duration(0)
	if f.head.Rate != "" {
		asked, ok := parseRate(f.head.Rate)
		if !ok {
			r.Note("E.7/crawl-rate", f.URL, "crawl_rate is "+kit.Short(f.head.Rate)+", which is not a valid rate")
		}
		gap = asked
	}
	if p, _ := r.policy.Known(); p != nil {
		if n := p.Rate.PerSecond; n > 0 {
			gap = max(gap, time.Duration(min(float64(maxGap), float64(time.Second)/n)))
		}
	}
	r.pace.set(gap)
	if len(f.head.Nulls) > 0 {
		r.Note("E.9/null", f.URL, strings.Join(f.head.Nulls, ", ")+": null or of the wrong type; treated as absent")
	}
	if site, err := canon.URL(f.head.Site); err != nil || !slices.Contains(f.origins, canon.Origin(site)) {
		r.Note("reader/site", f.URL, "site is "+kit.Short(f.head.Site)+", which is on another origin")
	}
}

// past returns t, or now if t is zero or in the future.
func past(t, now time.Time) time.Time {
	if t.IsZero() || t.After(now) {
		return now
	}
	return t
}
