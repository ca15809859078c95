package millrace

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// Filer is a [Publisher] that also makes files: what is as large as the site,
// carries its own hash in its name, comes in several codings under several
// names, and may stay for a while after the edition that it was made for.
type Filer interface {
	Publisher
	// Files makes the files of a view on a shelf, from those that the edition
	// before had there. now is when the edition is made: nothing of a finer
	// clock may show in the files. again says when they have to be made anew
	// though no page has changed; the zero time is never.
	Files(ctx context.Context, v View, now time.Time, s Shelf) (again time.Time, err error)
	// Deferred makes the files of a view that take too long for an edition, such as
	// those of the whole site. They are published with a later edition, maybe of a
	// later view: its Files gets them as held. Nothing else that is done with s has
	// an effect.
	Deferred(ctx context.Context, v View, now time.Time, s Shelf) error
}

// Shelf is where a room puts the files of one edition. It is not safe for
// concurrent use.
type Shelf interface {
	// Held gives the files that the room had in the edition before, and the deferred
	// ones since then, as far as they are there, in the order in which they were put.
	Held() []File
	// Keep puts a held file again.
	Keep(f File)
	// Withdraw takes a held file away for good: until a time, its path is 410 Gone.
	Withdraw(f File, until time.Time)
	// Withdrawn gives the notes of the files that were withdrawn and whose time is not
	// over.
	Withdrawn() []json.RawMessage
	// Draft starts the bytes of new files.
	Draft() (Draft, error)
	// Put builds a large document, whose bytes may depend on the files.
	Put(ctx context.Context, d *Document) error
}

// Draft is a file that is being written: identity bytes, before any coding.
type Draft interface {
	io.Writer
	// Finish puts one file for each coding, in their order, all with the
	// members of f. Its bytes are head and then what was written. name gives the path
	// of each, by its coding and the lower-case hex SHA-256 of its bytes. Without
	// an ETag, each gets "sha256:" and that hash. They are durable when it returns.
	Finish(ctx context.Context, head []byte, f File, codings []string, name func(coding, sum string) string) ([]File, error)
	// Discard gives up what was not finished. It may be called after Finish.
	Discard()
}

// File is one file of an edition, with fixed bytes at a fixed path.
type File struct {
	Path     string          // under the documents' base, starting with "/"
	Coding   string          // content coding of the bytes: "zstd", "gzip", or "" for none
	ETag     string          // without quotes
	Header   http.Header     // Content-Type, Cache-Control and the like
	Modified time.Time       // of Last-Modified
	Size     int64           // of the bytes as they are sent
	Sum      string          // lower-case hex SHA-256 of them
	Names    int64           `json:",omitempty"` // how many pages it names or has; 0 = none, or nobody knows
	Note     json.RawMessage // the room's own, to be found again in the next edition
}
