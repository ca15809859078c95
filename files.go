package millrace

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// ArtifactPublisher is a [Publisher] that also makes artifacts: files that are
// as large as the site, have a hash in their name, come in several codings under
// several names, and may outlive the edition that they were made for.
type ArtifactPublisher interface {
	Publisher
	// Artifacts puts the artifacts of a view in s, from those of the previous
	// edition. now is the time of the edition; the artifacts must not depend on
	// a finer clock. again is when to call Artifacts again although no page has
	// changed; the zero time is never.
	Artifacts(ctx context.Context, v View, now time.Time, s ArtifactSet) (again time.Time, err error)
	// Deferred makes the artifacts that take too long for an edition, such as
	// those of the whole site. A later edition, perhaps of a later view, publishes
	// them: its Artifacts finds them in [ArtifactSet.Held]. Only the artifacts
	// that Deferred writes count; its other calls of s have no effect.
	Deferred(ctx context.Context, v View, now time.Time, s ArtifactSet) error
}

// ArtifactSet collects the artifacts of one protocol for one edition. It is not
// safe for concurrent use.
type ArtifactSet interface {
	// Held returns the protocol's artifacts of the previous edition and the
	// deferred ones made since then, in the order in which they were put. Lost
	// ones are left out.
	Held() []Artifact
	// Keep puts a held artifact in the new edition too.
	Keep(f Artifact)
	// Withdraw removes a held artifact for good. Until a time, its path is
	// 410 Gone.
	Withdraw(f Artifact, until time.Time)
	// Withdrawn returns the notes of the artifacts that are withdrawn and whose
	// time is not over.
	Withdrawn() []json.RawMessage
	// Create starts a new artifact.
	Create() (ArtifactWriter, error)
	// Put builds a large document, whose bytes may depend on the artifacts.
	Put(ctx context.Context, d *Document) error
}

// ArtifactWriter writes an artifact: its identity bytes, before any coding.
type ArtifactWriter interface {
	io.Writer
	// Finish puts one artifact for each coding, in their order, all with the
	// members of f. Their bytes are head followed by what was written. name
	// returns the path of each, by its coding and the lower-case hex SHA-256 of its
	// bytes. Without an ETag, each gets "sha256:" and that hash. The artifacts are
	// durable when Finish returns.
	Finish(ctx context.Context, head []byte, f Artifact, codings []string, name func(coding, sum string) string) ([]Artifact, error)
	// Discard drops what was not finished. It may be called after Finish.
	Discard()
}

// Artifact is a file of an edition, with fixed bytes at a fixed path.
type Artifact struct {
	Path      string          // under the endpoint base, starting with "/"
	Coding    string          // content coding of the bytes: "zstd", "gzip", or "" for identity
	ETag      string          // without quotes
	Header    http.Header     // Content-Type, Cache-Control and the like
	Modified  time.Time       // value of Last-Modified
	Size      int64           // of the bytes as they are sent
	Sum       string          // lower-case hex SHA-256 of these bytes
	PageCount int64           `json:",omitempty"` // number of pages that the artifact names or contains; 0 = none or unknown
	Note      json.RawMessage // the protocol's own data, kept for the next edition
}
