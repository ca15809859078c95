package memory

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/record"
)

// view is a log at a sequence number.
type view struct {
	site  *site
	of    *publication // nil: the log is the site's
	log   *log
	names record.Names
	info  millrace.Site
}

// describe sets the description of the view.
func (v *view) describe(seq uint64, docs string) {
	v.info = millrace.Site{Base: v.names.Base, Docs: docs, Epoch: v.log.epoch, Earlier: v.log.earlier, Seq: seq}
	if seq == v.log.seq {
		v.info.Time = v.log.time
	}
	sections := make(map[string]int)
	for url := range v.log.pages {
		e := v.at(url)
		if e.time.After(v.info.Time) {
			v.info.Time = e.time
		}
		if e.Present {
			v.info.Pages++
			sections[e.Section]++
		}
	}
	delete(sections, "")
	for name, n := range sections {
		v.info.Sections = append(v.info.Sections, millrace.Section{Name: name, Pages: n})
	}
	slices.SortFunc(v.info.Sections, func(a, b millrace.Section) int { return strings.Compare(a.Name, b.Name) })
	if u, err := url.Parse(v.names.Base); err == nil {
		v.info.Title = u.Host
	}
	if e := v.home(); e.Present {
		v.info.Home = e.url
		if p, err := e.View(v.names, e.url); err == nil {
			v.info.Title, v.info.Language = cmp.Or(p.Title, v.info.Title), p.Language
		}
	}
}

// maxRedirects is how many redirects in a row lead to a home page.
const maxRedirects = 5

// home returns the entry of the home page: "/", or the page that a source has
// found where "/" redirects to.
func (v *view) home() *entry {
	e := v.at("/")
	for i := 0; i < maxRedirects && !e.Present; i++ {
		to := ""
		for _, src := range v.site.sources {
			for _, name := range []string{e.url, v.site.names.Absolute(e.url)} {
				if r := src.refs[name]; r.alias {
					to = max(to, r.identity)
				}
			}
		}
		e = v.at(to)
	}
	return e
}

func (v *view) at(url string) *entry { return v.log.at(url, v.info.Seq) }

func (v *view) Site() millrace.Site {
	info := v.info
	info.Sections, info.Earlier = slices.Clone(info.Sections), slices.Clone(info.Earlier)
	return info
}

// whole returns f, and ErrConflict in its place if Compact has taken something
// from the view.
func whole[T any](v *view, f func() (T, error)) func() (T, error) {
	return func() (T, error) {
		if v.info.Seq < v.log.floor {
			return *new(T), fmt.Errorf("%w: the view of sequence number %d has been compacted away", millrace.ErrConflict, v.info.Seq)
		}
		return f()
	}
}

// entries returns the entries of the pages that the view has, in an order.
func (v *view) entries(section string, order func(a, b *entry) int) (all []*entry) {
	for url := range v.log.pages {
		if e := v.at(url); e.Present && (section == "" || e.Section == section) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, order)
	return all
}

func byURL(a, b *entry) int { return strings.Compare(a.url, b.url) }

func bySeq(a, b *entry) int { return cmp.Compare(a.seq, b.seq) }

func byPublished(a, b *entry) int {
	rank := func(e *entry) int64 {
		if e.Published == 0 {
			return math.MaxInt64 // undated: last
		}
		return -e.Published
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), byURL(a, b))
}

// Scan implements [millrace.View]. ErrNotFound: the view has no page with the
// URL After, and the order is not by URL.
func (v *view) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	entries := list(ctx, v.site.store, "scan site "+v.site.name, whole(v, func() ([]*entry, error) {
		order := byURL
		switch s.Order {
		case millrace.ByURL:
		case millrace.ByPublished:
			order = byPublished
		case millrace.BySeq:
			order = func(a, b *entry) int { return bySeq(b, a) }
		default:
			return nil, fmt.Errorf("%w: order %d", millrace.ErrInvalid, s.Order)
		}
		all := v.entries(s.Section, order)
		if s.After != "" {
			after := v.at(v.names.Identity(s.After))
			if s.Order != millrace.ByURL && !after.Present {
				return nil, fmt.Errorf("resume after %s: %w", s.After, millrace.ErrNotFound)
			}
			all = slices.DeleteFunc(all, func(e *entry) bool { return order(e, after) <= 0 })
		}
		if s.Limit > 0 {
			all = all[:min(s.Limit, len(all))]
		}
		return all, nil
	}))
	return func(yield func(*millrace.Page, error) bool) {
		for e, err := range entries {
			var p *millrace.Page
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				c := e.Entry
				if !s.Bodies {
					c.Blocks = nil
				}
				p, err = c.View(v.names, e.url)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

func (v *view) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	e, err := get(ctx, v.site.store, "page "+have.URL, whole(v, func() (*entry, error) {
		e := v.at(v.names.Identity(have.URL))
		switch {
		case !e.Present:
			return nil, millrace.ErrNotFound
		case have.Version == hex.EncodeToString(e.Revision):
			return nil, millrace.ErrUnmodified
		}
		return e, nil
	}))
	if err != nil {
		return nil, err
	}
	return e.View(v.names, e.url)
}

// Changes implements [millrace.Source]: the log since a cursor, each page once
// with its latest change, and a milestone. From the start ("") it is every
// page, and the milestone is whole.
func (v *view) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return list(ctx, v.site.store, "changes of site "+v.site.name, whole(v, func() (all []millrace.Change, err error) {
		var from uint64
		entries := v.entries("", byURL)
		if since != "" {
			if from, err = v.info.Place(since); err != nil {
				return nil, err
			}
			if from > v.info.Seq || from < v.log.horizon {
				return nil, fmt.Errorf("cursor %q: %w: it is ahead of this view, or the log does not reach back to it; start over", since, millrace.ErrConflict)
			}
			entries = nil
			for url := range v.log.pages {
				if e := v.at(url); url != "" && e.seq > from {
					entries = append(entries, e)
				}
			}
			slices.SortFunc(entries, bySeq)
		}
		for _, e := range entries {
			c := millrace.Change{Kind: millrace.Put, New: since == "" || !v.log.at(e.url, from).Present, Time: e.time}
			if c.URL, c.Version = v.names.Absolute(e.url), hex.EncodeToString(e.Revision); !e.Present {
				c.Kind = millrace.Delete
			}
			all = append(all, c)
		}
		mark := &millrace.Milestone{Cursor: v.info.At(v.info.Seq), Whole: since == ""}
		return append(all, millrace.Change{Kind: millrace.Mark, Time: v.info.Time, Mark: mark}), nil
	}))
}

func (v *view) Tag(ctx context.Context, room, url string) (millrace.Tag, error) {
	return get(ctx, v.site.store, "tag of "+url+" in "+room, whole(v, func() (millrace.Tag, error) {
		identity := v.names.Identity(url)
		t, ok := v.tag(room, v.at(identity))
		switch {
		case ok:
			return t, nil
		case v.of != nil && v.of.hasShown(room, identity, v.info.Seq):
			return t, millrace.ErrGone
		}
		return t, millrace.ErrNotFound
	}))
}

// tag returns the tag of a page of the view, and whether it has one.
func (v *view) tag(room string, e *entry) (millrace.Tag, bool) {
	t, ok := e.tags[room]
	if !ok || v.of == nil || v.of.taggers[room].Tag == nil {
		return millrace.Tag{}, false
	}
	out := millrace.Tag{URL: v.names.Absolute(e.url), Value: t.value, N: 1, Modified: record.Instant(e.Modified)}
	if rivals := v.of.taggers[room].Rivals; rivals != nil {
		before, _ := rivals(e.url)
		for _, url := range before {
			if v.at(url).Present {
				out.N++
			}
		}
	}
	return out, true
}

func (v *view) Tags(ctx context.Context, room, after string) iter.Seq2[millrace.Tag, error] {
	return list(ctx, v.site.store, "tags of "+room, whole(v, func() (all []millrace.Tag, _ error) {
		for _, e := range v.entries("", byURL) {
			if t, ok := v.tag(room, e); ok && e.url > v.names.Identity(after) {
				all = append(all, t)
			}
		}
		return all, nil
	}))
}

func (v *view) SeqAt(ctx context.Context, t time.Time) (uint64, error) {
	return get(ctx, v.site.store, "sequence number at a time", whole(v, func() (uint64, error) { return v.log.seqAt(v.info.Seq, t), nil }))
}
