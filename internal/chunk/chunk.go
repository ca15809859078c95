package chunk

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"

	"github.com/millrace/millrace"
)

// maxPart is the maximum number of code points of a part. Longer headings are truncated; other
// text is divided. It is smaller than a passage, so that a part still fits with a heading.
const maxPart = 1800

// Types of parts and passages.
const (
	Paragraph = "paragraph"
	Heading   = "heading"
	List      = "list" // one item or row per line
	Code      = "code"
	Quote     = "quote"
)

// Part is a block of a page, or a piece of a block.
type Part struct {
	Type  string // Paragraph, Heading, List, Code or Quote
	Text  string // plain text, not empty, trimmed; code keeps the indent of its first line
	Level int    // level of a heading, 1 to 6; 0 for other types
}

// Parts returns the content of a page as parts, in document order.
func Parts(page *millrace.Page) []Part {
	var out []Part
	for _, p := range walk(page.Blocks) {
		out = append(out, p.Part)
	}
	return out
}

// namer generates the IDs of the passages of one page.
type namer struct {
	count map[string]int
	used  map[string]bool
}

var alphabet = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// name returns the ID of the next passage, which it derives from the type, the text, and the number
// of equal passages before it.
func (n *namer) name(kind, text string) string {
	if n.used == nil {
		n.count, n.used = map[string]int{}, map[string]bool{}
	}
	sum := sha256.Sum256([]byte(kind + "\n" + text))
	base := string(sum[:])
	for {
		id := base
		if c := n.count[base]; c > 0 {
			next := sha256.Sum256([]byte(base + strconv.Itoa(c)))
			id = string(next[:])
		}
		n.count[base]++
		if id = alphabet.EncodeToString([]byte(id[:8])); !n.used[id] {
			n.used[id] = true
			return id
		}
	}
}
