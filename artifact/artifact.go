// Package artifact defines stores of artifacts: the chunks, nodes and files of an edition. An
// artifact is a named sequence of bytes. It is created once, never changed, and read in ranges.
//
// Each engine has its own package: artifact/dir stores artifacts in a folder, artifact/s3 in a
// bucket, and artifact/memory in the memory of the process. The suite in artifact/artifacttest
// tests every engine.
//
// # Names
//
// A name identifies its bytes, because it is the hash of the content or is used only once. If two
// processes put the same name, they put the same bytes, and the store may keep either copy.
//
// A name has segments that are separated by "/". A segment consists of lower-case letters, digits,
// "-", "." and "_", and begins and ends with a letter or a digit. A name has at most [MaxName]
// bytes. The names a and a/b may both exist.
//
// # Age
//
// Garbage collection deletes artifacts that no edition refers to and that have reached an age of
// several hours. A builder that refers to an existing artifact first calls [Touch], or [Store.Put]
// if it has the bytes. Both renew the modification time. Times come from the clock of the store,
// which may run on another machine, and may be rounded to seconds.
//
// # Batches
//
// A store in a remote service needs one request for each change. [Batch] combines the changes made
// by a function into few requests.
//
// # Concurrency
//
// Put and Delete of the same name are not coordinated: a Put of an existing artifact succeeds, but
// a concurrent Delete may remove the artifact. A lease prevents builders and garbage collection
// from running at the same time.
package artifact

import (
	"context"
	"fmt"
	"io"
	"iter"
	"regexp"
	"time"

	"github.com/millrace/millrace"
)

// MaxName is the maximum length of a name in bytes.
const MaxName = 200

// Info describes an artifact.
type Info struct {
	Name     string
	Size     int64     // in bytes
	Modified time.Time // time of the last Put of the name, in UTC
}

// Store stores artifacts. All methods are safe for concurrent use, and also for use by several
// processes unless the store is in memory.
//
// If a name breaks the rules in the package comment, the methods return ErrInvalid with the code
// artifact-name. If ctx is done when a method begins, the method returns the error of ctx.
type Store interface {
	// Put creates an artifact with the bytes of r. The artifact appears under its name only when it is
	// complete, and is durable when Put returns nil. If Put returns an error of r or of ctx, it has stored
	// nothing. After another error, the complete artifact may exist.
	//
	// If the name exists, Put keeps its bytes, renews its modification time and returns nil,
	// without reading r. If another Put creates the name while r is being read, Put keeps the bytes
	// of the other Put and returns nil.
	Put(ctx context.Context, name string, r io.Reader) error

	// Open returns a reader of length bytes of an artifact that begin at offset. Length -1 means
	// all bytes to the end. A range ends at the end of the artifact, and is empty if it begins
	// there or later. ctx must not end before the reader is closed. If the artifact is deleted
	// meanwhile, reading continues or fails.
	//
	// If the artifact does not exist, Open returns ErrNotFound. If offset is negative or length is
	// less than -1, Open returns ErrInvalid with the code artifact-range.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)

	// Stat describes an artifact. If the artifact does not exist, Stat returns ErrNotFound.
	Stat(ctx context.Context, name string) (Info, error)

	// List yields the artifacts whose names begin with prefix, in the order of the bytes of their
	// names. It yields an artifact that exists throughout the listing exactly once, and an artifact
	// that is put or deleted meanwhile at most once. It ends after an error. Callers may call other
	// methods inside the loop.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes an artifact. It returns nil if the artifact does not exist.
	Delete(ctx context.Context, name string) error
}

// Batcher is a Store that makes several changes together in less time than one by one.
type Batcher interface {
	Store
	// Batch calls f with a context for the methods of the store. When Batch returns nil, all
	// changes made with this context are durable and visible to others, if they were not before.
	// Calls with the context see these changes at once. They also see all changes that ended before
	// Batch was called, but may miss later changes by others. If Batch returns an error, which may
	// be the error of f, some of the changes may have taken effect.
	Batch(ctx context.Context, f func(ctx context.Context) error) error
}

// Batch calls f. If s is a [Batcher], changes made with the context that f receives may take effect
// only when Batch returns nil.
func Batch(ctx context.Context, s Store, f func(ctx context.Context) error) error {
	if b, ok := s.(Batcher); ok {
		return b.Batch(ctx, f)
	}
	return f(ctx)
}

// Touch renews the modification time of an artifact, so that garbage collection keeps the artifact.
// If the artifact does not exist, Touch returns ErrNotFound.
func Touch(ctx context.Context, s Store, name string) error {
	return s.Put(ctx, name, absent{})
}

// absent is a reader that returns ErrNotFound. Touch passes it to Put, which reads only if the
// artifact does not exist.
type absent struct{}

func (absent) Read([]byte) (int, error) { return 0, millrace.ErrNotFound }

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*$`)

// CheckName returns an error if name is not a valid name. Engines call it first.
func CheckName(name string) error {
	if len(name) > MaxName || !validName.MatchString(name) {
		return millrace.Coded("artifact-name", fmt.Errorf("artifact name %.*q: %w", MaxName, name, millrace.ErrInvalid))
	}
	return nil
}

// CheckRange returns an error if [Store.Open] does not allow offset and length. Engines call it
// after [CheckName].
func CheckRange(offset, length int64) error {
	if offset < 0 || length < -1 {
		return millrace.Coded("artifact-range", fmt.Errorf("artifact range with offset %d and length %d: %w", offset, length, millrace.ErrInvalid))
	}
	return nil
}
