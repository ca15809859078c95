package millrace

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// ArtifactPublisher is a [Publisher] that also writes artifacts. An artifact is a file with a hash
// in its name, and can be as large as the site. The same content in two codings is two artifacts.
// An artifact may outlive the edition for which it was written.
type ArtifactPublisher interface {
	Publisher
	// Artifacts adds the artifacts of a view to s, and reuses those of the previous edition. now is
	// the time of the edition; the artifacts must not depend on any other clock. again is the time
	// of the next call of Artifacts if no page changes until then; zero means never.
	Artifacts(ctx context.Context, v View, now time.Time, s ArtifactSet) (again time.Time, err error)
	// Deferred writes the artifacts that take too long for an edition, such as those of the whole
	// site. A later edition, perhaps of a later view, publishes them: its call of Artifacts finds
	// them in [ArtifactSet.Existing]. Deferred uses s only to create artifacts; its other calls to
	// s have no effect.
	Deferred(ctx context.Context, v View, now time.Time, s ArtifactSet) error
}

// ArtifactSet collects the artifacts of one protocol for one edition. It is not
// safe for concurrent use.
type ArtifactSet interface {
	// Existing returns the protocol's artifacts of the previous edition, and the deferred artifacts
	// written since then, in the order of their creation. It omits artifacts whose files are
	// missing.
	Existing() []Artifact
	// Keep adds an existing artifact to the new edition.
	Keep(f Artifact)
	// Withdraw removes an existing artifact permanently. Requests for its path get 410 Gone until
	// the given time.
	Withdraw(f Artifact, until time.Time)
	// Withdrawn returns the notes of the artifacts that were withdrawn until a time in the future,
	// and of the artifacts of the previous edition that Existing omits.
	Withdrawn() []json.RawMessage
	// Create starts a new artifact.
	Create() (ArtifactWriter, error)
	// Put builds a large document. Its bytes may depend on the artifacts of the set.
	Put(ctx context.Context, d *Document) error
}

// ArtifactWriter writes the bytes of an artifact without content coding.
type ArtifactWriter interface {
	io.Writer
	// Finish adds one artifact per coding, in the order of codings. Each has the fields of f, and
	// contains head followed by the written bytes. name returns the path of an artifact, given its
	// coding and the lower-case hex SHA-256 of its encoded bytes. If f has no ETag, the ETag is
	// "sha256:" followed by that hash. The artifacts are durable when Finish returns.
	Finish(ctx context.Context, head []byte, f Artifact, codings []string, name func(coding, sum string) string) ([]Artifact, error)
	// Discard drops the artifact if Finish has not completed it. It may also be called after
	// Finish.
	Discard()
}

// Artifact is a file of an edition, with fixed bytes at a fixed path.
type Artifact struct {
	Path      string          // path under the endpoint base, starting with "/"
	Coding    string          // content coding of the bytes: "zstd", "gzip", or "" for identity
	ETag      string          // entity tag without quotes
	Header    http.Header     // header fields, such as Content-Type and Cache-Control
	Modified  time.Time       // value of Last-Modified
	Size      int64           // encoded size in bytes
	Sum       string          // lower-case hex SHA-256 of the encoded bytes
	PageCount int64           `json:",omitempty"` // number of pages that the artifact lists or contains, or 0 if unknown
	Versions  string          `json:",omitempty"` // path pattern of the later documents for which this artifact is the compression dictionary, with "*" for any characters, or ""
	Note      json.RawMessage // data that the protocol stores for the next edition
}
