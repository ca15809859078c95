package millrace

import (
	"context"
	"iter"
	"strings"
	"time"
)

// Ref names a page at a source and one version of the page.
type Ref struct {
	URL     string // URL as the source spells it; [Page.URL] takes precedence
	Version string // validator of the version, verbatim, or "" if unknown; see [SameVersion]
	// Location is the URL of the source's document of the page if it differs from URL, such as
	// TCT's M-URL. A validator belongs to its Location.
	Location string
	// Section is the part of the source that lists the page, such as one shard of a list. If empty,
	// the source has no parts.
	Section string
}

// SameVersion reports whether two validators denote the same version of a page. Entity tags compare
// weakly (RFC 9110, section 8.8.3.2). Quotes, the prefix "sha256-" and the suffix of a content
// coding, such as "-gzip", are ignored, because servers and proxies add them. An empty validator
// equals no other.
func SameVersion(a, b string) bool { return a != "" && b != "" && opaque(a) == opaque(b) }

// opaque returns a validator without the affixes that SameVersion ignores.
func opaque(v string) string {
	v = strings.TrimPrefix(strings.Trim(strings.TrimPrefix(v, "W/"), `"`), "sha256-")
	for _, coding := range [...]string{"-gzip", "-br", "-zstd"} {
		v = strings.TrimSuffix(v, coding)
	}
	return v
}

// Kind is the kind of a [Change].
type Kind uint8

// The kinds of changes.
const (
	Put            Kind = iota // the page exists; it may have changed
	Delete                     // the page was deleted
	KindCheckpoint             // the stream has reached a [Checkpoint]
)

// Change is one entry of a source's stream or of the store's log.
type Change struct {
	Kind Kind
	Ref
	Page       *Page     // Put: the page; if nil, fetch it with Source.Page, unless Version is the stored version
	New, Newer bool      // New: the page did not exist at the cursor; a new page with Delete was created and deleted since the cursor. Newer: apply only if Modified is later than the stored time (SCP deltas)
	Time       time.Time // time of the change, if known; for a checkpoint, the time of the oldest state that the stream has reported
	Checkpoint *Checkpoint
}

// Checkpoint is a position in a stream. A reader that has applied all changes up to it may resume
// from Cursor.
type Checkpoint struct {
	Cursor Cursor
	// Complete reports whether the stream has listed all pages of Section. If so, pages of Section
	// that it has not listed since the previous complete checkpoint of Section are deleted.
	Complete bool
	Section  string // part of the source, if Complete. If empty, the whole source.
}

// Cursor is a position in a source's stream. It is printable. Only the source can interpret it.
type Cursor string

// Source is an origin of pages: a store, a folder, or a remote site.
type Source interface {
	// Changes yields the changes since a cursor, with one checkpoint per complete part. The cursor
	// "" is the start. Changes verifies a page before it yields the page, for example by the
	// checksum of its file. For an unreadable entry, it yields a *SkipError and continues. Any
	// other error ends the stream. If the source rejects the cursor, the error is ErrConflict;
	// start over from "".
	Changes(ctx context.Context, since Cursor) iter.Seq2[Change, error]

	// Page returns the current state of one page. If have has a Version, the request is
	// conditional, and ErrUnmodified means that this version is current. If the page does not
	// exist, Page returns ErrNotFound. Page is safe for concurrent use.
	Page(ctx context.Context, have Ref) (*Page, error)
}

// Sink stores changes.
type Sink interface {
	// Apply stores a batch durably in one transaction. from names the source: its origin and
	// protocol. A Put without a Page only updates the [SyncState] of its Ref. A batch has at
	// most one checkpoint, as its last change.
	Apply(ctx context.Context, from string, batch []Change) (Counts, error)
}

// SyncState is an optional interface of a [Sink] that stores the state of each source. A Sink
// without SyncState receives all pages again in each run.
type SyncState interface {
	// Cursor returns the last applied cursor of a source, or "" if none.
	Cursor(ctx context.Context, from string) (Cursor, error)
	// KnownRefs yields the last applied refs of a source, ordered by URL: those of the given URLs,
	// or all if no URLs are given. It skips unknown URLs.
	KnownRefs(ctx context.Context, from string, urls ...string) iter.Seq2[Ref, error]
}

// OriginalStore is an optional interface of a [Sink] that stores [Page.Original].
type OriginalStore interface {
	// Original returns the Original of the last page that a source provided under a URL, even if
	// that page changed nothing. The sink stores an Original durably with its page. It deletes the
	// Original when it deletes the URL or the URL's Version, and when the page arrives without an
	// Original. A Put without a page keeps the Original. If the URL is unknown, or its page had no
	// Original or one larger than MaxOriginal, the method returns ErrNotFound. If the stored bytes
	// are damaged, it returns ErrInvalid.
	Original(ctx context.Context, from, url string) ([]byte, error)
}

// MaxOriginal is the maximum size of Page.Original in bytes. Larger originals are dropped.
const MaxOriginal = 4 << 20

// Counts counts the effects of a batch on the pages of a sink.
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
