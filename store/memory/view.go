package memory

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// view is a state of a log.
type view struct {
	site  *site
	of    *publication // publication of the view; nil for a view of the site
	log   *log
	names record.Names
	*state
	info millrace.Site
}

// describe sets the description of the view.
func (v *view) describe(docs string) error {
	v.info = millrace.Site{Base: v.names.Base, EndpointBase: docs, Epoch: v.log.epoch, Earlier: v.log.earlier, Seq: v.seq, Time: *v.time, Volatile: v.names.Volatile}
	pages, tagged := make(map[string]int), make(map[string]int)
	for _, e := range v.entries("", byURL) {
		pages[e.Section]++
		for proto := range e.tags {
			if v.of != nil && v.of.taggers[proto].Tag != nil {
				tagged[proto]++
			}
		}
	}
	// The home page is "/", or the page to which "/" redirects according to a source.
	home := v.entry("/")
	for i := 0; i < record.MaxRedirects && !home.Present; i++ {
		to := ""
		for _, src := range v.site.sources {
			for _, name := range []string{home.url, v.site.names.Absolute(home.url)} {
				if r, _ := src.refs.Get(name); r.Alias {
					to = max(to, r.Path)
				}
			}
		}
		home = v.entry(to)
	}
	if !home.Present {
		home = new(entry)
	}
	return record.Describe(&v.info, pages, tagged, home.url, home.Meta, v.site.store.values[[2]string{v.site.name, store.TitleKey}])
}

func (v *view) Site() millrace.Site {
	info := v.info
	info.Sections, info.Earlier = slices.Clone(info.Sections), slices.Clone(info.Earlier)
	return info
}

// entries returns the entries of the pages of the view, in the given order.
func (v *view) entries(section string, order func(a, b *entry) int) (all []*entry) {
	for _, e := range v.pages.Values() {
		if e.Present && (section == "" || e.Section == section) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, order)
	return all
}

func byURL(a, b *entry) int { return strings.Compare(a.url, b.url) }

func bySeq(a, b *entry) int { return cmp.Compare(a.seq, b.seq) }

// orders maps each order of a scan to its comparison function.
var orders = map[millrace.Order]func(a, b *entry) int{
	millrace.ByURL:       byURL,
	millrace.ByPublished: func(a, b *entry) int { return cmp.Or(cmp.Compare(a.Rank(), b.Rank()), byURL(a, b)) },
	millrace.BySeq:       func(a, b *entry) int { return bySeq(b, a) },
}

// Scan implements [millrace.View]. If the order is not by URL, and the page After is not in the
// view, Scan yields ErrNotFound.
func (v *view) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		entries, err := get(ctx, v.site.store, "scan site "+v.site.name, func() ([]*entry, error) { return v.scan(s) })
		if err != nil {
			yield(nil, err)
		}
		for _, e := range entries {
			c := e.Entry
			if !s.WithBlocks {
				c.Blocks = nil
			}
			p, err := c.View(v.names, e.url)
			if err = cmp.Or(ctx.Err(), err); !yield(p, err) || err != nil {
				return
			}
		}
	}
}

func (v *view) scan(s millrace.Scan) ([]*entry, error) {
	order := orders[s.Order]
	if order == nil {
		return nil, fmt.Errorf("%w: order %d", millrace.ErrInvalid, s.Order)
	}
	all := v.entries(s.Section, order)
	if s.After != "" {
		after := v.entry(v.names.Path(s.After))
		if s.Order != millrace.ByURL && !after.Present {
			return nil, fmt.Errorf("resume after %s: %w", s.After, millrace.ErrNotFound)
		}
		all = slices.DeleteFunc(all, func(e *entry) bool { return order(e, after) <= 0 })
	}
	if s.Limit > 0 {
		all = all[:min(s.Limit, len(all))]
	}
	return all, nil
}

func (v *view) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	return get(ctx, v.site.store, "page "+have.URL, func() (*millrace.Page, error) {
		e := v.entry(v.names.Path(have.URL))
		switch {
		case !e.Present:
			return nil, millrace.ErrNotFound
		case have.Version == hex.EncodeToString(e.Revision):
			return nil, millrace.ErrUnmodified
		}
		return e.View(v.names, e.url)
	})
}

// Changes implements [millrace.Source]. It yields the changes in the log since a cursor, each page
// once with its latest change, and then a checkpoint. From the start ("") it yields every page, and
// the checkpoint is complete.
func (v *view) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return list(ctx, v.site.store, "changes of site "+v.site.name, func() (all []millrace.Change, err error) {
		var from uint64
		entries := v.entries("", byURL)
		if since != "" {
			if from, err = v.info.SeqOf(since); err != nil {
				return nil, err
			}
			if from > v.seq || from < v.log.horizon {
				return nil, fmt.Errorf("cursor %q: %w: ahead of this view, or older than the log; start over", since, millrace.ErrConflict)
			}
			entries = slices.DeleteFunc(v.pages.Values(), func(e *entry) bool { return e.seq <= from })
			slices.SortFunc(entries, bySeq)
		}
		before := v.log.at(from)
		for _, e := range entries {
			c := millrace.Change{Kind: millrace.Put, New: since == "" || !before.entry(e.url).Present, Time: *e.time}
			if c.URL, c.Version = v.names.Absolute(e.url), hex.EncodeToString(e.Revision); !e.Present {
				c.Kind = millrace.Delete
			}
			all = append(all, c)
		}
		mark := &millrace.Checkpoint{Cursor: v.info.At(v.seq), Complete: since == ""}
		return append(all, millrace.Change{Kind: millrace.KindCheckpoint, Time: v.info.Time, Checkpoint: mark}), nil
	})
}

func (v *view) Tag(ctx context.Context, proto, url string) (millrace.Tag, error) {
	return get(ctx, v.site.store, "tag of "+url+" in "+proto, func() (millrace.Tag, error) {
		path := v.names.Path(url)
		t, ok := v.tag(proto, v.entry(path))
		switch {
		case ok:
			return t, nil
		case v.of != nil && v.of.hasPublished(proto, path, v.seq):
			return t, millrace.ErrGone
		}
		return t, millrace.ErrNotFound
	})
}

// tag returns the tag of a page of the view. The Boolean reports whether the page has one.
func (v *view) tag(proto string, e *entry) (millrace.Tag, bool) {
	value := e.tags[proto]
	if value == "" || v.of == nil || v.of.taggers[proto].Tag == nil {
		return millrace.Tag{}, false
	}
	out := millrace.Tag{URL: v.names.Absolute(e.url), Value: value, N: 1, Modified: e.Date()}
	if conflicts := v.of.taggers[proto].Conflicts; conflicts != nil {
		before, _ := conflicts(e.url)
		for _, url := range before {
			if v.entry(url).Present {
				out.N++
			}
		}
	}
	return out, true
}

func (v *view) Tags(ctx context.Context, proto, after string) iter.Seq2[millrace.Tag, error] {
	return list(ctx, v.site.store, "tags of "+proto, func() (all []millrace.Tag, _ error) {
		for _, e := range v.entries("", byURL) {
			if t, ok := v.tag(proto, e); ok && e.url > v.names.Path(after) {
				all = append(all, t)
			}
		}
		return all, nil
	})
}

func (v *view) SeqAt(ctx context.Context, t time.Time) (uint64, error) {
	return get(ctx, v.site.store, "sequence number at a time", func() (uint64, error) { return v.log.seqAt(v.seq, t), nil })
}
