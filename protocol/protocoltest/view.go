package protocoltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

// View is a millrace.View of pages in memory. It is immutable; [View.Next] returns the next view.
type View struct {
	site  millrace.Site
	ids   []string // identities in ascending order
	pages map[string]*millrace.Page
	tags  map[string]map[string]millrace.Tag // tags by protocol and identity
	named map[string]map[string]bool         // whether a page had a tag in an earlier view, by protocol and identity
	log   map[string]entry                   // last change of each page since the first view, by identity
	times []time.Time                        // times of the sequence numbers since the first view
}

// entry is the last change of a page.
type entry struct {
	kind millrace.Kind
	seq  uint64
	time time.Time
	new  bool
}

// NewView returns a view of a site's pages, whose URLs are canonical, and absolute or identities.
// It uses Base and the non-zero fields of site. It panics on pages that no store would contain: two
// pages with the same URL, or a page that a tagger rejects.
func NewView(site millrace.Site, pages []*millrace.Page, taggers ...millrace.Tagger) *View {
	v := &View{site: site, pages: map[string]*millrace.Page{}, tags: map[string]map[string]millrace.Tag{}}
	v.site.Tagged = map[string]int{}
	v.site.EndpointBase = cmp.Or(site.EndpointBase, site.Base)
	v.site.Epoch = cmp.Or(site.Epoch, "epoch")
	v.site.Seq = cmp.Or(site.Seq, 1)
	sections := map[string]int{}
	for _, p := range pages {
		p = p.Clone()
		p.URL = canon.Absolute(site.Base, p.URL)
		id := canon.Relative(site.Base, p.URL)
		p.Version = p.Revision()
		if v.pages[id] != nil {
			panic("protocoltest: duplicate page " + id)
		}
		v.pages[id] = p
		if p.Section != "" {
			sections[p.Section]++
		}
		if p.Modified.After(v.site.Time) {
			v.site.Time = p.Modified
		}
	}
	v.ids = slices.Sorted(maps.Keys(v.pages))
	v.site.Pages = len(v.ids)
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		v.site.Sections = append(v.site.Sections, millrace.Section{Name: name, Pages: sections[name]})
	}
	if v.pages["/"] != nil {
		v.site.Home = "/"
	} else if v.site.Home == "/" {
		v.site.Home = ""
	}
	v.site.Title = cmp.Or(site.Title, v.title())
	for _, t := range taggers {
		v.tag(t)
	}
	return v
}

func (v *View) title() string {
	if home := v.pages["/"]; home != nil && home.Title != "" {
		return home.Title
	}
	u, err := url.Parse(v.site.Base)
	if err != nil {
		panic("protocoltest: " + err.Error())
	}
	return u.Host
}

func (v *View) tag(t millrace.Tagger) {
	site := millrace.Site{Base: v.site.Base, EndpointBase: v.site.EndpointBase, Epoch: v.site.Epoch} // a store knows only these fields when it writes a page
	tags := map[string]millrace.Tag{}
	for _, id := range v.ids {
		p := v.pages[id]
		value, err := t.Tag(site, p)
		if err != nil {
			panic("protocoltest: " + err.Error())
		}
		if value == "" {
			continue
		}
		n := 1
		if t.Conflicts != nil {
			before, _ := t.Conflicts(id)
			for _, b := range before {
				if v.pages[b] != nil {
					n++
				}
			}
		}
		tags[id] = millrace.Tag{URL: p.URL, Value: value, N: n, Modified: p.Modified}
	}
	v.tags[t.Protocol] = tags
	v.site.Tagged[t.Protocol] = len(tags)
}

// Site returns the description of the site.
func (v *View) Site() millrace.Site { return v.site }

// Next returns the view of the same site at a later time, with the next sequence number, and with
// the changes since v in its log. Pages that differ are changed, and missing pages are deleted.
func (v *View) Next(at time.Time, pages []*millrace.Page, taggers ...millrace.Tagger) *View {
	site := millrace.Site{Base: v.site.Base, EndpointBase: v.site.EndpointBase, Epoch: v.site.Epoch, Seq: v.site.Seq + 1, Home: v.site.Home, Title: v.site.Title}
	next := NewView(site, pages, taggers...)
	next.site.Time, next.log = at, maps.Clone(v.log)
	next.named = map[string]map[string]bool{}
	for proto, tags := range v.tags {
		next.named[proto] = map[string]bool{}
		maps.Copy(next.named[proto], v.named[proto])
		for id := range tags {
			next.named[proto][id] = true
		}
	}
	next.times = append(slices.Clone(v.times), at)
	if len(v.times) == 0 {
		next.log, next.times = map[string]entry{}, []time.Time{v.site.Time, at}
	}
	for id, p := range next.pages {
		if was := v.pages[id]; was == nil || was.Version != p.Version {
			next.log[id] = entry{millrace.Put, site.Seq, at, was == nil}
		}
	}
	for id := range v.pages {
		if next.pages[id] == nil {
			next.log[id] = entry{millrace.Delete, site.Seq, at, false}
		}
	}
	return next
}

// first returns the sequence number after which the log begins.
func (v *View) first() uint64 { return v.site.Seq - uint64(max(len(v.times), 1)) + 1 }

// since yields the changes after a sequence number.
func (v *View) since(ctx context.Context, seq uint64, yield func(millrace.Change, error) bool) {
	var ids []string
	for id, e := range v.log {
		if e.seq > seq {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(v.log[a].seq, v.log[b].seq), strings.Compare(a, b)) })
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			yield(millrace.Change{}, err)
			return
		}
		e := v.log[id]
		c := millrace.Change{Kind: e.kind, Ref: millrace.Ref{URL: canon.Absolute(v.site.Base, id)}, Time: e.time, New: e.new}
		if p := v.pages[id]; p != nil {
			c.Version, c.Page = p.Version, p.Clone()
		}
		if !yield(c, nil) {
			return
		}
	}
	yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: v.site.At(v.site.Seq)}}, nil)
}

// Changes yields every page, or the changes since a cursor of the log.
func (v *View) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		here := v.site.At(v.site.Seq)
		for seq := v.first(); seq < v.site.Seq; seq++ {
			if since == v.site.At(seq) {
				v.since(ctx, seq, yield)
				return
			}
		}
		if since != "" && since != here {
			yield(millrace.Change{}, fmt.Errorf("the cursor is %q, want the view's %q: %w", since, here, millrace.ErrConflict))
			return
		}
		for _, id := range v.ids {
			if since != "" {
				break
			}
			if err := ctx.Err(); err != nil {
				yield(millrace.Change{}, err)
				return
			}
			p := v.pages[id]
			c := millrace.Change{
				Ref: millrace.Ref{URL: p.URL, Version: p.Version}, Page: p.Clone(), New: true, Time: v.site.Time,
			}
			if !yield(c, nil) {
				return
			}
		}
		m := &millrace.Checkpoint{Cursor: here, Complete: since == ""}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: m}, nil)
	}
}

// Page returns one page.
func (v *View) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := v.pages[canon.Relative(v.site.Base, have.URL)]
	switch {
	case p == nil:
		return nil, fmt.Errorf("page %s: %w", have.URL, millrace.ErrNotFound)
	case have.Version == p.Version:
		return nil, fmt.Errorf("page %s: %w", have.URL, millrace.ErrUnmodified)
	}
	return p.Clone(), nil
}

// Scan yields pages.
func (v *View) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	ids := slices.Clone(v.ids)
	switch s.Order {
	case millrace.ByPublished:
		slices.SortStableFunc(ids, func(a, b string) int {
			return v.pages[b].Published.Compare(v.pages[a].Published) // the zero time comes last
		})
	case millrace.BySeq:
		slices.SortStableFunc(ids, func(a, b string) int {
			return cmp.Or(cmp.Compare(v.log[b].seq, v.log[a].seq), v.pages[b].Modified.Compare(v.pages[a].Modified))
		})
	}
	if s.After != "" {
		after := canon.Relative(v.site.Base, s.After)
		at := slices.Index(ids, after)
		if at < 0 && s.Order == millrace.ByURL { // the page was deleted
			at, _ = slices.BinarySearch(ids, after)
			at--
		}
		ids = ids[1+at:]
	}
	return func(yield func(*millrace.Page, error) bool) {
		n := 0
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			p := v.pages[id].Clone()
			if s.Section != "" && p.Section != s.Section {
				continue
			}
			if !s.WithBlocks {
				p.Blocks = nil
			}
			if n++; !yield(p, nil) || n == s.Limit {
				return
			}
		}
	}
}

// Tag returns a protocol's tag of one page.
func (v *View) Tag(ctx context.Context, proto, url string) (millrace.Tag, error) {
	if err := ctx.Err(); err != nil {
		return millrace.Tag{}, err
	}
	id := canon.Relative(v.site.Base, url)
	t, ok := v.tags[proto][id]
	switch {
	case !ok && v.named[proto][id]:
		return millrace.Tag{}, fmt.Errorf("%s tag of %s: %w", proto, url, millrace.ErrGone)
	case !ok:
		return millrace.Tag{}, fmt.Errorf("%s tag of %s: %w", proto, url, millrace.ErrNotFound)
	}
	return t, nil
}

// Tags yields a protocol's tags.
func (v *View) Tags(ctx context.Context, proto, after string) iter.Seq2[millrace.Tag, error] {
	return func(yield func(millrace.Tag, error) bool) {
		after := canon.Relative(v.site.Base, after)
		for _, id := range v.ids {
			if err := ctx.Err(); err != nil {
				yield(millrace.Tag{}, err)
				return
			}
			t, ok := v.tags[proto][id]
			if ok && strings.Compare(id, after) > 0 && !yield(t, nil) {
				return
			}
		}
	}
}

// SeqAt returns the last sequence number at or before t, or 0 if t is before the first view.
func (v *View) SeqAt(_ context.Context, t time.Time) (uint64, error) {
	if !t.Before(v.site.Time) {
		return v.site.Seq, nil
	}
	for i := len(v.times) - 1; i >= 0; i-- {
		if !t.Before(v.times[i]) {
			return v.first() + uint64(i), nil
		}
	}
	return 0, nil
}

// Publish refreshes a publication, publishes it as an edition without artifacts, and returns
// the view.
func Publish(ctx context.Context, pub store.Publication) (millrace.View, error) {
	if _, err := pub.Refresh(ctx, store.Lease{}, 0, nil); err != nil {
		return nil, err
	}
	v, err := pub.Head(ctx)
	if err != nil {
		return nil, err
	}
	_, last, err := pub.Published(ctx)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		return nil, err
	}
	_, err = pub.Publish(ctx, store.Lease{}, last.Number, v.Site().Seq, nil)
	return v, err
}

// Volatile returns a view whose log ends with the process.
func Volatile(v millrace.View) millrace.View { return volatile{v} }

type volatile struct{ millrace.View }

func (v volatile) Site() millrace.Site {
	site := v.View.Site()
	site.Volatile = true
	return site
}
