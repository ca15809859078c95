package scp

import (
	"bytes"
	"time"
)

const (
	version    = "0.1"           // version that the publisher writes (Collection Metadata)
	hashPrefix = "sha256:"       // prefix of a checksum (Checksum Calculation)
	sumMember  = `,"checksum":"` // beginning of the member that the hash excludes
	noSum      = "0000000000000000000000000000000000000000000000000000000000000000"

	// Limits of the specification (Security Considerations, Resource Exhaustion Attacks). Sizes are
	// in bytes.
	maxFile   = 50_000_000_000
	maxBytes  = 500_000_000_000
	maxRatio  = 100
	maxLine   = 100_000_000
	maxBlocks = 1000

	// Maximum nesting depth. The specification has no limit.
	maxDepth = 64
	// The ratio limit does not apply to files with a smaller decoded size.
	ratioFloor = 1 << 20
)

// Metadata is the first line of a file (Collection Metadata).
type Metadata struct {
	ID        string
	Section   string
	Type      string    // "snapshot" or "delta"
	Generated time.Time // time in UTC
	Since     time.Time // time in UTC; zero for a snapshot
	Checksum  string    // "sha256:" and 64 hexadecimal digits; "" = none
	Version   string    // version, such as "0.1"
}

// line returns the metadata line with its line end, and the position of the 64 digits of the
// checksum, which are zeros. A file cannot contain its own hash, so the checksum excludes its own
// member (see cutChecksum). If withoutChecksum is set, the member is absent and digits is 0.
func (m *Metadata) line(withoutChecksum bool) (b []byte, digits int) {
	w, end := *m, "}\n"
	if w.Checksum = hashPrefix + noSum; withoutChecksum {
		w.Checksum = ""
	}
	b = append(collectionObject.write([]byte(`{"collection":`), &w), end...)
	if withoutChecksum {
		return b, 0
	}
	return b, len(b) - len(noSum+`"}`+end)
}

// cutChecksum removes the checksum member from a line written by line.
func cutChecksum(line []byte) []byte {
	at := bytes.LastIndex(line, []byte(sumMember))
	if at < 0 {
		return line
	}
	end := at + len(sumMember) + len(hashPrefix) + len(noSum) + 1
	return append(append(make([]byte, 0, len(line)), line[:at]...), line[end:]...)
}

// page is one line after the first (Page Schema). "" and the zero time mean that a member is
// absent.
type page struct {
	URL         string
	Title       string
	Description string
	Author      string
	Published   time.Time
	Modified    time.Time
	Language    string
	Canonical   string
	Schema      []byte // one JSON object on one line
	Content     []block
}

// blockType is the type of a content block.
type blockType string

// The content block types, with the members of block that each uses.
const (
	textBlock    blockType = "text"    // Text
	headingBlock blockType = "heading" // Level, Text
	linkBlock    blockType = "link"    // URL, Text, Rel
	imageBlock   blockType = "image"   // URL, Text (alternative text)
	listBlock    blockType = "list"    // Ordered, Items
	codeBlock    blockType = "code"    // Language, Text (code)
	tableBlock   blockType = "table"   // Rows
	quoteBlock   blockType = "quote"   // Text, Citation
	videoBlock   blockType = "video"   // Media
	audioBlock   blockType = "audio"   // Media
)

// block is a content block. The constants of blockType list the members of each type.
type block struct {
	Type     blockType
	Level    int
	Ordered  bool
	Text     string // text, alternative text, or code
	URL      string
	Language string
	Citation string
	Rel      []string
	Items    []string
	Rows     [][]string
	Media    *media
}

// media is a video or an audio recording (ActivityStreams 2.0, with extensions).
type media struct {
	Name         string
	URL          string   // single URL
	Sources      []source // several URLs, in place of URL
	Duration     string
	Width        int // video only
	Height       int // video only
	Icon         string
	Summary      string
	AttributedTo string    // audio only
	PartOf       string    // audio only
	Captions     []caption // video only
	Chapters     []chapter
	Transcript   string
}

type source struct{ Href, MediaType string }

type caption struct{ Language, URL, Label string }

type chapter struct {
	Time  int
	Title string
}
