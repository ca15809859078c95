package millrace

import (
	"context"
	"iter"
	"strings"
	"time"
)

// Ref names a page at a source, and one state of it.
type Ref struct {
	URL     string // as the source names it; [Page.URL] may say a better one
	Version string // validator, verbatim; see [SameVersion]; "" = unknown, ask
	// Location is where the source keeps its form of the page, when that is
	// not URL (TCT's M-URL). A validator belongs to its Location.
	Location string
	// Section is the part of the source that names the page (one shard of a
	// list, one collection); "" when the source has no parts.
	Section string
}

// SameVersion reports whether two validators name one state of a page. Entity
// tags compare weakly (RFC 9110, section 8.8.3.2). Quotes do not count, nor do the
// name of a hash, "sha256-", and the suffix of a content coding, such as "-gzip":
// servers and proxies add them. It is false for "".
func SameVersion(a, b string) bool { return a != "" && b != "" && opaque(a) == opaque(b) }

// opaque gives what a validator has beside marks that do not count.
func opaque(v string) string {
	v = strings.TrimPrefix(strings.Trim(strings.TrimPrefix(v, "W/"), `"`), "sha256-")
	for _, coding := range [...]string{"-gzip", "-br", "-zstd"} {
		v = strings.TrimSuffix(v, coding)
	}
	return v
}

// Kind says what a change does.
type Kind uint8

// The kinds of changes.
const (
	Put    Kind = iota // the page exists, perhaps with a new state
	Delete             // the page is gone
	Mark               // a part of the stream is complete
)

// Change is one step of a source's stream, or of the store's log.
type Change struct {
	Kind Kind
	Ref
	Page       *Page     // Put: nil = ask Source.Page if Version differs from the one held
	New, Newer bool      // New: unknown before since; a deletion: it came and went. Newer: apply only if Modified is later than held (SCP deltas)
	Time       time.Time // when it happened, if the source knows; of a Mark: the oldest state that the stream has told of so far
	Mark       *Milestone
}

// Milestone says how far a stream has come: whoever has applied everything up
// to it may resume from Cursor.
type Milestone struct {
	Cursor  Cursor
	Whole   bool   // what the stream did not name of Section since the last milestone of it is gone
	Section string // with Whole: the part that was named wholly; "" = everything
}

// Cursor is a place in a source's stream. It is the source's own, opaque to
// everybody else, and printable.
type Cursor string

// Source is where pages come from.
type Source interface {
	// Changes yields what has changed since a cursor ("" = from the start),
	// with one Mark per complete part. It yields only what it stands behind:
	// a checksummed file is verified before its first page. A *SkipError is
	// reported and the stream goes on; any other error ends it.
	// ErrConflict: the cursor is refused, start over from "".
	Changes(ctx context.Context, since Cursor) iter.Seq2[Change, error]

	// Page gives the present state of one page. With a Version in have it
	// asks conditionally: ErrUnmodified means that it still stands.
	// ErrNotFound: there is no such page. It is safe for concurrent use.
	Page(ctx context.Context, have Ref) (*Page, error)
}

// Sink takes changes in.
type Sink interface {
	// Apply makes a batch durable in one transaction, or none of it. from
	// names the source: its origin and protocol. A Put without a Page only
	// updates what [Memory] knows of its Ref. The Mark of a batch, if it has
	// one, is its last change.
	Apply(ctx context.Context, from string, batch []Change) (Tally, error)
}

// Memory is what a [Sink] remembers of each source. It is found by assertion;
// a Sink without it gets everything anew each time.
type Memory interface {
	// Cursor gives the last cursor applied of this source, "" if none.
	Cursor(ctx context.Context, from string) (Cursor, error)
	// Held yields the refs last applied of this source, of the given URLs or
	// of all, in the order of their URLs. A URL that is not held is left out.
	Held(ctx context.Context, from string, urls ...string) iter.Seq2[Ref, error]
}

// Originals is what a [Sink] keeps of [Page.Original]. It is found by assertion;
// a Sink without it forgets them.
type Originals interface {
	// Original gives what the last page that a source has brought by a name was
	// made of, whether or not it said anything new. It is durable with that
	// page, and goes with the name, or when the name's Version is forgotten. A
	// page that comes without one takes an older one away; a Put without a page
	// leaves it. ErrNotFound: there is none, it was larger than MaxOriginal, or
	// the name is not held. ErrInvalid: it is damaged.
	Original(ctx context.Context, from, url string) ([]byte, error)
}

// MaxOriginal is the most bytes that a Page.Original may have: one with more is
// not kept.
const MaxOriginal = 4 << 20

// Tally counts what a batch did to the pages of a sink.
type Tally struct {
	Added, Updated, Deleted, Unchanged int
}

// Add adds the counts of u to t.
func (t *Tally) Add(u Tally) {
	t.Added += u.Added
	t.Updated += u.Updated
	t.Deleted += u.Deleted
	t.Unchanged += u.Unchanged
}
