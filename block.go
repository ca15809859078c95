package millrace

// Block is one piece of a page's content. Blocks are in reading order. The comment of each
// [BlockType] lists the fields that it uses; the other fields are zero.
type Block struct {
	Type BlockType `json:"type"` // type of the block

	Text  string `json:"text,omitempty"`  // plain text in UTF-8
	Spans []Span `json:"spans,omitempty"` // formatting of Text, ordered by start, longer spans first; spans nest and never overlap partly

	Level    int           `json:"level,omitempty"`    // heading: 1 to 6
	Anchor   string        `json:"anchor,omitempty"`   // heading, footnote: URL fragment that identifies the block
	Language string        `json:"language,omitempty"` // code: lower case, such as "go"; math: "tex" or "mathml"
	Ordered  bool          `json:"ordered,omitempty"`  // list: the items are numbered
	Reversed bool          `json:"reversed,omitempty"` // numbered list: the numbers count down, to 1 if Start is zero
	Start    int           `json:"start,omitempty"`    // numbered list: first number, if not 1
	Items    []Item        `json:"items,omitempty"`    // list, definitions: the items
	Rows     [][]Cell      `json:"rows,omitempty"`     // table: the rows
	Blocks   []Block       `json:"blocks,omitempty"`   // quote, callout, footnote: content
	Caption  string        `json:"caption,omitempty"`  // table, image, video, audio, code: caption or label
	Title    string        `json:"title,omitempty"`    // callout, link, embed, video, audio: heading or name
	Kind     string        `json:"kind,omitempty"`     // callout: note, tip, important, warning, caution; embed: provider
	Cite     string        `json:"cite,omitempty"`     // quote: source of the quote
	URL      string        `json:"url,omitempty"`      // image, video, audio, embed, link: absolute; quote: URL of the source
	Alt      string        `json:"alt,omitempty"`      // image: alternative text
	Poster   string        `json:"poster,omitempty"`   // video, audio: URL of the poster image
	Sources  []MediaSource `json:"sources,omitempty"`  // video, audio: further sources
	Tracks   []Track       `json:"tracks,omitempty"`   // video, audio: text tracks
	Rel      []string      `json:"rel,omitempty"`      // link: link relations, such as "nofollow"
	Media    *Media        `json:"media,omitempty"`    // video, audio: further metadata
}

// Media is the metadata of a video or an audio recording.
type Media struct {
	Duration   string    `json:"duration,omitempty"`   // ISO 8601 duration in hours, minutes and seconds, such as "PT5M20S"
	Width      int       `json:"width,omitempty"`      // width in pixels
	Height     int       `json:"height,omitempty"`     // height in pixels
	Creator    string    `json:"creator,omitempty"`    // display name of the creator
	Series     string    `json:"series,omitempty"`     // name of the album, season or series
	Chapters   []Chapter `json:"chapters,omitempty"`   // chapters by start time
	Transcript string    `json:"transcript,omitempty"` // transcript in plain text
}

// Chapter is a part of a video or an audio recording.
type Chapter struct {
	Time  int    `json:"time"`  // start in seconds
	Title string `json:"title"` // title of the chapter
}

// BlockType is the type of a block.
type BlockType string

// The types of blocks.
const (
	HeadingBlock     BlockType = "heading"     // Text, Spans, Level, Anchor
	TextBlock        BlockType = "text"        // Text, Spans: a paragraph; "\n" is a line break
	ListBlock        BlockType = "list"        // Items, Ordered, Start, Reversed
	DefinitionsBlock BlockType = "definitions" // Items with Term
	CodeBlock        BlockType = "code"        // Text (the exact bytes of the code), Language, Caption
	TableBlock       BlockType = "table"       // Rows, Caption
	QuoteBlock       BlockType = "quote"       // Blocks, Cite, URL
	CalloutBlock     BlockType = "callout"     // Kind, Title, Blocks
	ImageBlock       BlockType = "image"       // URL, Alt, Caption
	VideoBlock       BlockType = "video"       // URL, Sources, Poster, Tracks, Title, Caption, Media
	AudioBlock       BlockType = "audio"       // URL, Sources, Poster, Tracks, Title, Caption, Media
	EmbedBlock       BlockType = "embed"       // URL, Kind, Title
	FootnoteBlock    BlockType = "footnote"    // Anchor, Text (the label of the footnote), Blocks
	MathBlock        BlockType = "math"        // Text, Language
	LinkBlock        BlockType = "link"        // URL, Text, Rel: a link outside of running text
)

// Span marks a part of a block's text. Start and End are byte offsets into Text: 0 <= Start <
// End <= len(Text). Neither splits a UTF-8 sequence.
type Span struct {
	Type  SpanType `json:"type"`          // type of the span
	Start int      `json:"start"`         // offset of the span's first byte
	End   int      `json:"end"`           // offset after the span's last byte
	URL   string   `json:"url,omitempty"` // link: absolute URL
}

// SpanType is the type of a span.
type SpanType string

// The types of spans. The text of a math span is TeX. The URL of a footnote span is the Anchor
// of its footnote block.
const (
	LinkSpan        SpanType = "link"
	CodeSpan        SpanType = "code"
	EmphasisSpan    SpanType = "emphasis"
	StrongSpan      SpanType = "strong"
	MathSpan        SpanType = "math"
	FootnoteSpan    SpanType = "footnote"
	SubscriptSpan   SpanType = "subscript"
	SuperscriptSpan SpanType = "superscript"
)

// Number returns the number that an ordered list shows for the item with index item. The result
// is between 0 and 999999999, the limits of CommonMark.
func (b *Block) Number(item int) int {
	n, step := b.Start, 1
	if b.Reversed {
		step = -1
	}
	if n == 0 {
		n = 1
		if b.Reversed {
			n = len(b.Items)
		}
	}
	return min(max(min(n, 1e9)+step*item, 0), 999_999_999)
}

// Item is one item of a list, or one term with its definition.
type Item struct {
	Term   string  `json:"term,omitempty"`   // definitions: the term; several terms are joined by "\n"
	Text   string  `json:"text,omitempty"`   // plain text of the item
	Spans  []Span  `json:"spans,omitempty"`  // formatting of the text
	Task   bool    `json:"task,omitempty"`   // the item has a checkbox
	Done   bool    `json:"done,omitempty"`   // the checkbox is checked
	Blocks []Block `json:"blocks,omitempty"` // blocks after the text, such as nested lists
}

// Cell is one cell of a table. A Colspan or Rowspan of 0 means 1.
type Cell struct {
	Text    string `json:"text,omitempty"`    // plain text of the cell
	Spans   []Span `json:"spans,omitempty"`   // formatting of the text
	Header  bool   `json:"header,omitempty"`  // header cell
	Colspan int    `json:"colspan,omitempty"` // number of columns, if more than 1
	Rowspan int    `json:"rowspan,omitempty"` // number of rows, if more than 1
}

// MediaSource is one encoding of a video or an audio recording.
type MediaSource struct {
	URL  string `json:"url"`            // absolute URL
	Type string `json:"type,omitempty"` // media type
}

// Track is a text track of a video or an audio recording.
type Track struct {
	URL      string `json:"url"`                // absolute URL
	Kind     string `json:"kind,omitempty"`     // kind of the track, such as "captions"
	Language string `json:"language,omitempty"` // BCP 47 language tag
	Label    string `json:"label,omitempty"`    // label for people
}
