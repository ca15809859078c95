package origintest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/origin/origintest"
)

// book is a site stored as JSON in one file.
type book struct{ file string }

// content is the content of the file.
type content struct {
	Pages map[string]entry
	Down  bool
	Hung  bool
}

// entry is one page.
type entry struct {
	Title, Text  string
	Broken, None bool // whether the page is unavailable, or is not a page
}

func (b book) Address() string        { return b.file }
func (b book) Base() string           { return "https://mill.example/" }
func (b book) URL(name string) string { return "/" + name }

// load reads the file.
func (b book) load() (c content, err error) {
	data, err := os.ReadFile(b.file)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// edit changes the file atomically.
func (b book) edit(change func(c *content)) error {
	c, err := b.load()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if c.Pages == nil {
		c.Pages = map[string]entry{}
	}
	change(&c)
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(b.file+".new", b.file)
}

func (b book) Put(name, title, text string) error {
	return b.edit(func(c *content) { c.Pages["/"+name] = entry{Title: title, Text: text} })
}

func (b book) Delete(name string) error {
	return b.edit(func(c *content) { delete(c.Pages, "/"+name) })
}

func (b book) Break(name string) error  { return b.broken(name, true) }
func (b book) Repair(name string) error { return b.broken(name, false) }

func (b book) broken(name string, broken bool) error {
	return b.edit(func(c *content) {
		e := c.Pages["/"+name]
		e.Broken = broken
		c.Pages["/"+name] = e
	})
}

func (b book) Trouble(t origintest.Trouble) error {
	return b.edit(func(c *content) { c.Down, c.Hung = t == origintest.Down, t == origintest.Hung })
}

func (b book) Unreadable() ([]string, error) {
	return []string{"/blank"}, b.edit(func(c *content) { c.Pages["/blank"] = entry{None: true} })
}

// reader is a correct origin for a book. A fault replaces a part of it.
type reader struct {
	book
	fault fault
}

func (r *reader) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	if r.fault.changes != nil {
		return r.fault.changes(r, ctx, since)
	}
	return r.changes(ctx, since)
}

func (r *reader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if r.fault.page != nil {
		return r.fault.page(r, ctx, have)
	}
	return r.page(ctx, have)
}

// get reads the site. It fails if the site is down. If the site is hung, get waits until the
// context ends.
func (r *reader) get(ctx context.Context) (content, error) {
	c, err := r.load()
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case err != nil:
		return c, fmt.Errorf("%w: %w", millrace.ErrUnavailable, err)
	case c.Hung:
		<-ctx.Done()
		return c, ctx.Err()
	case c.Down:
		return c, millrace.ErrUnavailable
	}
	return c, nil
}

func (r *reader) changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		c, err := r.get(ctx)
		if err != nil {
			yield(millrace.Change{}, err)
			return
		}
		current := cursor(c)
		if since == current {
			yield(mark(current, false), nil)
			return
		}
		for _, u := range slices.Sorted(maps.Keys(c.Pages)) {
			var ok bool
			switch e := c.Pages[u]; {
			case ctx.Err() != nil:
				yield(millrace.Change{}, ctx.Err())
				return
			case e.None:
				ok = yield(millrace.Change{}, &millrace.SkipError{URL: u, Err: fmt.Errorf("it is blank: %w", millrace.ErrInvalid)})
			case e.Broken:
				ok = yield(millrace.Change{}, &millrace.SkipError{URL: u, Err: millrace.ErrUnavailable})
			default:
				ok = yield(put(u, version(e)), nil)
			}
			if !ok {
				return
			}
		}
		yield(mark(current, true), nil)
	}
}

func (r *reader) page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	c, err := r.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", have.URL, err)
	}
	e, ok := c.Pages[have.URL]
	switch {
	case !ok || e.None:
		return nil, fmt.Errorf("page %s: %w", have.URL, millrace.ErrNotFound)
	case e.Broken:
		return nil, fmt.Errorf("page %s: %w", have.URL, millrace.ErrUnavailable)
	case version(e) == have.Version:
		return nil, millrace.ErrUnmodified
	}
	return &millrace.Page{
		URL: have.URL, Title: e.Title, Blocks: millrace.TextBlocks(e.Text), Version: version(e),
		Known: millrace.FieldTitle | millrace.FieldContent, Detail: millrace.DetailText,
	}, nil
}

func version(e entry) string { return digest(e.Title + "\n" + e.Text) }

func cursor(c content) millrace.Cursor { return millrace.Cursor(digest(fmt.Sprint(c))) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

func put(url, version string) millrace.Change {
	return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: url, Version: version}}
}

func mark(c millrace.Cursor, complete bool) millrace.Change {
	return millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: c, Complete: complete}}
}

// origin returns an origin with a fault.
func origin(f fault) origintest.Origin {
	return origintest.Origin{
		New: func(t testing.TB) origintest.Site {
			b := book{filepath.Join(t.TempDir(), "book.json")}
			if err := b.edit(func(*content) {}); err != nil {
				t.Fatal(err)
			}
			return b
		},
		Open: func(_ testing.TB, place string, _ origintest.KnownRefs) (millrace.Source, error) {
			return &reader{book{place}, f}, nil
		},
	}
}

func TestGood(t *testing.T) { origintest.Run(t, origin(fault{})) }

// name returns the name of the subtest of a case.
func name(sentence string) string { return strings.ReplaceAll(sentence, " ", "_") }
