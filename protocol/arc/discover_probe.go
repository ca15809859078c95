package arc

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

const (
	// probeBytes is the maximum number of coded bytes of a list that a probe reads.
	probeBytes = 64 << 10
	// deltaHead is the size of a delta without pages. deltaRatio is the size of a page in a delta
	// relative to its size in a list, which compresses better.
	deltaHead  = 200
	deltaRatio = 1.5
)

// listProbe is the result of reading the beginning of a list.
type listProbe struct {
	kit.Resource
	pages, withoutSnapshot int
	fields                 millrace.Fields
	detail                 millrace.Detail
	size                   int64     // coded size of the whole list in bytes
	read                   int64     // number of decoded bytes that were read
	guessed                bool      // only the beginning of the list was read, and pages is extrapolated from it
	unending               bool      // only the beginning of the list was read, and its length is unknown
	made                   time.Time // time when the list was generated; zero = unknown
}

// probe finds the list like a reader, reads its beginning, and checks whether the list has deltas.
func probe(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	r := &run{reader: newReader(client, endpoint, &ReaderOptions{ReaderOptions: kit.Value(o)})}
	if r.Err != nil {
		return nil, r.Err
	}
	r.is.Root = r.Root
	var l *listProbe
	tries := int64(0)
	err := r.discover(ctx, kit.Resource{}, func(at kit.Resource) (err error) {
		tries++
		l, err = r.probeList(ctx, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	offer := &protocol.Offer{
		Entry: l.URL, Pages: l.pages, WithoutContent: l.withoutSnapshot, Detail: l.detail, Fields: l.fields, Deletes: true,
		First:     protocol.Cost{Requests: 1 + tries, Bytes: l.size}, // including the request for the policy
		Unchanged: protocol.Cost{Requests: 1},
		Changed:   protocol.Cost{Requests: 1, Bytes: l.size},
	}
	if l.Validators == (fetch.Validators{}) {
		offer.Unchanged.Bytes = l.size
	}
	if l.unending {
		offer.Pages = -1
		offer.Basis = "the beginning of the list, which is longer"
	} else if offer.Estimated = l.guessed; l.guessed {
		offer.Basis = "the beginning of the list"
	}
	if r.o.Deltas < 0 || !l.guessed && !l.unending && l.read < r.o.Deltas || l.Validators == (fetch.Validators{}) || l.pages == 0 {
		return offer, nil
	}
	delta, ok, err := r.hasDelta(ctx, l)
	if err != nil || !ok {
		return offer, err
	}
	if l.size > 0 && delta > l.size/2 { // a reader applies the same limit
		offer.Basis = cmp.Or(offer.Basis, "the list") +
			", and its deltas; the last day's delta contains most of the pages, so refreshes on that day and the day after read the whole list"
	}
	// HEAD of the list, HEAD and GET of the delta of the last day read, and GET of today's delta.
	offer.Changed = protocol.Cost{Requests: 4, Bytes: 2 * deltaHead}
	offer.PerChange.Bytes = int64(deltaRatio * float64(l.size) / float64(l.pages))
	return offer, nil
}

// probeList reads the beginning of a possible list.
func (r *run) probeList(ctx context.Context, at kit.Resource) (*listProbe, error) {
	resp, err := r.Open(ctx, "list", at.URL, listTypes, fetch.Validators{})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if weblink.IsHTML(resp.Header) {
		return nil, fmt.Errorf("%s: list %s: %w", Name, at.URL, errNoList)
	}
	l := &listProbe{Resource: kit.Resource{URL: at.URL, Validators: fetch.ValidatorsOf(resp)}}
	f := &listFile{origins: r.originsOf(l.Resource, resp)}
	yaml := isYAML(resp)
	b, err := fetch.ReadBeginning(resp, probeBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: list: %w", Name, err)
	}
	text := b.Content
	if yaml {
		if !b.Complete {
			text = completePages(text)
		}
		if text, err = fromYAML(bytes.NewReader(text)); err != nil {
			return nil, r.refuse(ctx, at.URL, err)
		}
	}
	head, err := scanList(bytes.NewReader(text), r.o.MaxList, func(_ int, e *entry, _ []string, bad error) bool {
		if bad == nil {
			l.take(f, e)
		}
		return true
	})
	if err != nil && (b.Complete || l.pages == 0) {
		return nil, r.refuse(ctx, at.URL, err)
	}
	if head != nil {
		l.made = parseTime(head.Generated)
	} else if t, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		l.made = t // generated_at may be at the end of the list
	}
	l.size, l.read = max(b.Size, b.Read), int64(len(b.Content))
	more, unending := kit.SizeRatio(b)
	l.unending, l.guessed = unending, !b.Complete && !unending
	l.pages, l.withoutSnapshot = int(more*float64(l.pages)), int(more*float64(l.withoutSnapshot))
	return l, nil
}

// take counts an entry if a reader would read it.
func (l *listProbe) take(f *listFile, e *entry) {
	if _, err := f.own(e.URL); err != nil || !e.Indexable || restriction(e.Robots) != "" || e.auth() && e.Snapshot == nil {
		return
	}
	l.pages++
	if e.Snapshot == nil {
		l.withoutSnapshot++
	}
	if p := e.page(); l.pages <= 100 {
		l.fields |= p.Known
		l.detail = max(l.detail, p.Detail)
	}
}

// hasDelta reports whether the list has a delta of the day on which it was generated. size is the
// size of the delta in bytes; 0 or less means unknown.
func (r *run) hasDelta(ctx context.Context, l *listProbe) (size int64, ok bool, err error) {
	made := l.made
	if made.IsZero() {
		made = r.o.Now()
	}
	resp, err := r.Head(ctx, deltaURL(l.URL, made.UTC()), listTypes, fetch.Validators{})
	if err != nil {
		if unavailable(err) || ctx.Err() != nil {
			return 0, false, fmt.Errorf("%s: delta: %w", Name, err)
		}
		return 0, false, nil
	}
	_ = resp.Body.Close()
	return resp.ContentLength, resp.StatusCode == http.StatusOK && strings.Contains(resp.Header.Get("Content-Type"), "json"), nil
}
