package scp

import (
	"bytes"
	"time"
)

const (
	version    = "0.1"           // Collection Metadata, of what is written
	hashPrefix = "sha256:"       // Checksum Calculation
	sumMember  = `,"checksum":"` // starts the member that is no part of what is hashed
	noSum      = "0000000000000000000000000000000000000000000000000000000000000000"

	// Security Considerations, Resource Exhaustion Attacks.
	maxFile   = 50_000_000_000
	maxBytes  = 500_000_000_000
	maxRatio  = 100
	maxLine   = 100_000_000
	maxBlocks = 1000

	// The specification has no number for how deep a page may nest.
	maxDepth = 64
	// A file that is smaller than this when it is decoded is no bomb.
	ratioFloor = 1 << 20
)

// Metadata is what the first line of a file says (Collection Metadata).
type Metadata struct {
	ID        string
	Section   string
	Type      string    // "snapshot" or "delta"
	Generated time.Time // UTC
	Since     time.Time // UTC; zero: a snapshot says none
	Checksum  string    // "sha256:" and 64 hexadecimal digits; "" = none. It is not written, line leaves space for it
	Version   string    // such as "0.1"
}

// line gives the metadata as it is written, with its line end, and where the 64
// digits of the checksum belong, which are zeros. The checksum is that of all
// bytes of the file but the member that holds it (see cutChecksum), since a
// file cannot contain its own hash. bare leaves the member out; digits is 0 then.
func (m *Metadata) line(bare bool) (b []byte, digits int) {
	w, end := *m, "}\n"
	if w.Checksum = hashPrefix + noSum; bare {
		w.Checksum = ""
	}
	b = append(collectionObject.write([]byte(`{"collection":`), &w), end...)
	if bare {
		return b, 0
	}
	return b, len(b) - len(noSum+`"}`+end)
}

// cutChecksum gives a line of ours without the member that holds the checksum.
func cutChecksum(line []byte) []byte {
	at := bytes.LastIndex(line, []byte(sumMember))
	if at < 0 {
		return line
	}
	end := at + len(sumMember) + len(hashPrefix) + len(noSum) + 1
	return append(append(make([]byte, 0, len(line)), line[:at]...), line[end:]...)
}

// page is one line after the first (Page Schema). "" and the zero time are what
// is absent.
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

// blockType names the form of a content block.
type blockType string

// The content block types.
const (
	textBlock    blockType = "text"    // Text
	headingBlock blockType = "heading" // Level, Text
	linkBlock    blockType = "link"    // URL, Text, Rel
	imageBlock   blockType = "image"   // URL, Text: its alt
	listBlock    blockType = "list"    // Ordered, Items
	codeBlock    blockType = "code"    // Language, Text: its code
	tableBlock   blockType = "table"   // Rows
	quoteBlock   blockType = "quote"   // Text, Citation
	videoBlock   blockType = "video"   // Media
	audioBlock   blockType = "audio"   // Media
)

// block is a content block. Which members a type uses stands above.
type block struct {
	Type     blockType
	Level    int
	Ordered  bool
	Text     string // also alt and code
	URL      string
	Language string
	Citation string
	Rel      []string
	Items    []string
	Rows     [][]string
	Media    *media
}

// media is what a video or an audio says (ActivityStreams 2.0, with extensions).
type media struct {
	Name         string
	URL          string   // the form with one URL
	Sources      []source // the form with several, in place of URL
	Duration     string
	Width        int // video
	Height       int // video
	Icon         string
	Summary      string
	AttributedTo string    // audio
	PartOf       string    // audio
	Captions     []caption // video
	Chapters     []chapter
	Transcript   string
}

type source struct{ Href, MediaType string }

type caption struct{ Language, URL, Label string }

type chapter struct {
	Time  int
	Title string
}
