package millrace

import (
	"context"
	"iter"
	"strings"
	"time"
)

// Ref names a page at a source, and one state of it.
type Ref struct {
	URL     string // as the source names it; [Page.URL] takes precedence
	Version string // validator, verbatim; see [SameVersion]; "" = unknown
	// Location is where the source keeps its form of the page if that is not
	// URL, such as TCT's M-URL. A validator belongs to its Location.
	Location string
	// Section is the part of the source that names the page, such as one shard
	// of a list; "" if the source has no parts.
	Section string
}

// SameVersion reports whether two validators name one state of a page. Entity
// tags compare weakly (RFC 9110, section 8.8.3.2). Quotes, the prefix "sha256-" and
// the suffix of a content coding, such as "-gzip", are ignored: servers and
// proxies add them. It returns false for "".
func SameVersion(a, b string) bool { return a != "" && b != "" && opaque(a) == opaque(b) }

// opaque returns a validator without the marks that SameVersion ignores.
func opaque(v string) string {
	v = strings.TrimPrefix(strings.Trim(strings.TrimPrefix(v, "W/"), `"`), "sha256-")
	for _, coding := range [...]string{"-gzip", "-br", "-zstd"} {
		v = strings.TrimSuffix(v, coding)
	}
	return v
}

// Kind is the kind of a change.
type Kind uint8

// The kinds of changes.
const (
	Put            Kind = iota // the page exists, perhaps with a new state
	Delete                     // the page is gone
	KindCheckpoint             // a part of the stream is complete
)

// Change is one step of a source's stream, or of the store's log.
type Change struct {
	Kind Kind
	Ref
	Page       *Page     // Put: if nil, ask Source.Page unless the Version is the one held
	New, Newer bool      // New: unknown before since; with Delete, the page came and went. Newer: apply only if Modified is later than held (SCP deltas)
	Time       time.Time // when it happened, if the source knows; of a checkpoint: the oldest state that the stream has reported so far
	Checkpoint *Checkpoint
}

// Checkpoint is the position of a stream. After applying everything up to it, a
// reader may resume from Cursor.
type Checkpoint struct {
	Cursor Cursor
	// Complete reports that the stream has named all of Section: its pages that
	// were not named since the previous complete checkpoint of it are gone.
	Complete bool
	Section  string // with Complete: the part; "" = everything
}

// Cursor is a place in a source's stream. It is printable; only the source can
// interpret it.
type Cursor string

// Source is where pages come from.
type Source interface {
	// Changes yields what has changed since a cursor ("" = from the start), with
	// one checkpoint per complete part. A page is yielded only after it was
	// verified, for example with the checksum of its file. A *SkipError is
	// reported and the stream goes on; any other error ends it.
	// ErrConflict: the cursor is refused, start over from "".
	Changes(ctx context.Context, since Cursor) iter.Seq2[Change, error]

	// Page returns the present state of one page. With a Version in have, it
	// asks conditionally, and ErrUnmodified means that the version is current.
	// ErrNotFound: the page does not exist. It is safe for concurrent use.
	Page(ctx context.Context, have Ref) (*Page, error)
}

// Sink stores changes.
type Sink interface {
	// Apply makes a batch durable in one transaction, or none of it. from names
	// the source: its origin and protocol. A Put without a Page only updates the
	// [SyncState] of its Ref. A batch has at most one checkpoint, as its last
	// change.
	Apply(ctx context.Context, from string, batch []Change) (Counts, error)
}

// SyncState is an optional interface of a [Sink] that remembers the state of each
// source. A Sink without it receives everything again with each run.
type SyncState interface {
	// Cursor returns the last cursor applied of a source, "" if none.
	Cursor(ctx context.Context, from string) (Cursor, error)
	// KnownRefs yields the refs last applied of a source, of the given URLs or of
	// all, in the order of their URLs. Unknown URLs are left out.
	KnownRefs(ctx context.Context, from string, urls ...string) iter.Seq2[Ref, error]
}

// OriginalStore is an optional interface of a [Sink] that stores [Page.Original].
type OriginalStore interface {
	// Original returns the Original of the last page that a source gave by a name,
	// whether or not that page changed anything. It is durable with the page, and
	// is deleted with the name, with the name's Version, and when the page comes
	// without an Original. A Put without a page leaves it. ErrNotFound: there is no
	// such name, or its page had no Original, or one larger than MaxOriginal.
	// ErrInvalid: it is damaged.
	Original(ctx context.Context, from, url string) ([]byte, error)
}

// MaxOriginal is the size limit of a Page.Original, in bytes. A larger one is
// dropped.
const MaxOriginal = 4 << 20

// Counts counts what a batch did to the pages of a sink.
type Counts struct {
	Added, Updated, Deleted, Unchanged int
}

// Add adds the counts of u to t.
func (t *Counts) Add(u Counts) {
	t.Added += u.Added
	t.Updated += u.Updated
	t.Deleted += u.Deleted
	t.Unchanged += u.Unchanged
}
