package scp

import "time"

// Schemas of all SCP objects, with members in the order of the specification's examples (Collection
// Metadata Schema, Page Object Schema). The parser, the writer and the checker rules use them.

var lineObject = objectOf("format/first-line", "",
	required("collection", &form[Metadata]{read: (*parser).collection}, func(m *Metadata) *Metadata { return m }))

var collectionObject = objectOf("format/first-line", "",
	required("id", nameForm, func(m *Metadata) *string { return &m.ID }).
		withRule("metadata/id", "id is a string of letters, digits, hyphens and underscores."),
	required("section", nameForm, func(m *Metadata) *string { return &m.Section }).
		withRule("metadata/section", "section is a string of letters, digits, hyphens and underscores."),
	required("type", kindForm, func(m *Metadata) *string { return &m.Type }).
		withRule("metadata/type", "type is snapshot or delta."),
	required("generated", instantForm, func(m *Metadata) *time.Time { return &m.Generated }).
		withRule("metadata/generated", "generated is a date-time."),
	optional("since", instantForm, func(m *Metadata) *time.Time { return &m.Since }).
		withRule("metadata/since", "since is a date-time. A delta must have it."),
	required("version", versionForm, func(m *Metadata) *string { return &m.Version }).
		withRule("metadata/version", "version has the format MAJOR.MINOR."),
	optional("checksum", checksumForm, func(m *Metadata) *string { return &m.Checksum }).
		withRule("checksum/form", "checksum is sha256: and 64 lower-case hexadecimal digits."))

var pageObject = objectOf("format/pages", "",
	required("url", urlForm, func(w *page) *string { return &w.URL }).
		withRule("page/url", "url is the full http or https URL of the page."),
	required("title", textForm, func(w *page) *string { return &w.Title }).
		withRule("page/title", "title is a string."),
	required("description", textForm, func(w *page) *string { return &w.Description }).
		withRule("page/description", "description is a string."),
	optional("author", textForm, func(w *page) *string { return &w.Author }).
		withRule("page/author", "author is a string."),
	optional("published", instantForm, func(w *page) *time.Time { return &w.Published }).
		withRule("page/published", "published is a date-time."),
	required("modified", instantForm, func(w *page) *time.Time { return &w.Modified }).
		withRule("page/modified", "modified is a date-time."),
	required("language", languageForm, func(w *page) *string { return &w.Language }).
		withRule("page/language", "language is a language tag."),
	optional("canonical", canonicalForm, func(w *page) *string { return &w.Canonical }).
		withRule("page/canonical", "canonical is a URL."),
	optional("schema", schemaForm, func(w *page) *[]byte { return &w.Schema }).
		withRule("page/schema", "schema is an object."),
	required("content", contentForm, func(w *page) *[]block { return &w.Content }).
		withRule("page/content", "content is an array of at least one block."),
	read[page]("collection", (*parser).ignore)) // ignored; the member belongs to a metadata line

var blockKinds = []*blockKind{
	blockOf(textBlock, "A text block has text.",
		required("text", textForm, blockText)),
	blockOf(headingBlock, "A heading block has a level and text.",
		required("level", levelForm, func(b *block) *int { return &b.Level }),
		required("text", textForm, blockText)),
	blockOf(linkBlock, "A link block has url and text, and may have rel, an array of strings.",
		required("url", linkForm, blockURL),
		required("text", textForm, blockText),
		optional("rel", textsForm, func(b *block) *[]string { return &b.Rel })),
	blockOf(imageBlock, "An image block has url and alt.",
		required("url", linkForm, blockURL),
		required("alt", textForm, blockText)),
	blockOf(listBlock, "A list block has ordered, true or false, and items, an array of strings.",
		required("ordered", boolForm, func(b *block) *bool { return &b.Ordered }),
		required("items", textsForm, func(b *block) *[]string { return &b.Items })),
	blockOf(codeBlock, "A code block has code, and may have a language.",
		optional("language", textForm, func(b *block) *string { return &b.Language }),
		required("code", textForm, blockText)),
	blockOf(tableBlock, "A table block has rows, an array of arrays of strings.",
		required("rows", rowsForm, func(b *block) *[][]string { return &b.Rows })),
	blockOf(quoteBlock, "A quote block has text, and may have a citation.",
		required("text", textForm, blockText),
		optional("citation", textForm, func(b *block) *string { return &b.Citation })),
	blockOf(videoBlock, "A video block has a name and at least one URL.",
		mediaTitle,
		required("url", sources(videoSource), blockMedia),
		mediaDuration,
		optional("width", naturalForm, func(b *block) *int { return &b.Media.Width }),
		optional("height", naturalForm, func(b *block) *int { return &b.Media.Height }),
		mediaIcon,
		mediaSummary,
		optional("captions", listOf(captionObject), func(b *block) *[]caption { return &b.Media.Captions }).
			withRule("blocks/captions", "captions are objects with language, url and label."),
		mediaChapters,
		mediaTranscript),
	blockOf(audioBlock, "An audio block has a name and at least one URL.",
		mediaTitle,
		required("url", sources(audioSource), blockMedia),
		mediaDuration,
		mediaIcon,
		mediaSummary,
		optional("attributedTo", namedForm, func(b *block) *string { return &b.Media.AttributedTo }),
		optional("partOf", namedForm, func(b *block) *string { return &b.Media.PartOf }),
		mediaChapters,
		mediaTranscript),
}

// blockKind is the schema of one block type.
type blockKind struct {
	name  blockType
	start []byte // usual beginning of a block of this type
	*object[block]
}

// anyBlock is the schema of unknown block types.
var anyBlock = blockOf("", "")

func blockOf(name blockType, says string, members ...member[block]) *blockKind {
	first := read[block]("type", (*parser).ignore) // blockKind has already read the type
	first.needs = true
	first.write = func(dst []byte, _ *block) []byte { return append(append(append(dst, '"'), name...), '"') }
	return &blockKind{name, []byte(`{"type":"` + string(name) + `"`), objectOf("blocks/"+string(name), says, append([]member[block]{first}, members...)...)}
}

func kindOf[T blockType | []byte](name T) *blockKind {
	for _, k := range blockKinds {
		if string(k.name) == string(name) {
			return k
		}
	}
	return anyBlock
}

func blockText(b *block) *string { return &b.Text }
func blockURL(b *block) *string  { return &b.URL }
func blockMedia(b *block) *media { return b.Media }

// Members of video and audio blocks.
var (
	mediaTitle    = required("name", textForm, func(b *block) *string { return &b.Media.Name })
	mediaDuration = optional("duration", durationForm, func(b *block) *string { return &b.Media.Duration }).
			withRule("blocks/duration", "duration is an ISO 8601 duration of hours, minutes and seconds.")
	mediaIcon = optional("icon", imageForm, func(b *block) *string { return &b.Media.Icon }).
			withRule("blocks/icon", "icon is an object of type Image.")
	mediaSummary  = optional("summary", textForm, func(b *block) *string { return &b.Media.Summary })
	mediaChapters = optional("chapters", listOf(chapterObject), func(b *block) *[]chapter { return &b.Media.Chapters }).
			withRule("blocks/chapters", "chapters are objects with time, in whole seconds, and title.")
	mediaTranscript = optional("transcript", textForm, func(b *block) *string { return &b.Media.Transcript })
)

// Objects in blocks. Violations in them are reported under the rule of the block.
var (
	audioSource = objectOf("", "",
		required("href", linkForm, func(s *source) *string { return &s.Href }),
		required("mediaType", textForm, func(s *source) *string { return &s.MediaType }))
	videoSource   = objectOf("", "", append(audioSource.members, read[source]("rel", func(p *parser) { p.str() }))...)
	captionObject = objectOf("", "",
		required("language", textForm, func(c *caption) *string { return &c.Language }),
		required("url", linkForm, func(c *caption) *string { return &c.URL }),
		required("label", textForm, func(c *caption) *string { return &c.Label }))
	chapterObject = objectOf("", "",
		required("time", naturalForm, func(c *chapter) *int { return &c.Time }),
		required("title", textForm, func(c *chapter) *string { return &c.Title }))
	imageObject = objectOf("", "",
		optional("type", is("Image"), self),
		optional("url", linkForm, self))
	namedObject = objectOf("", "",
		required("name", textForm, self))
)

func self(s *string) *string { return s }
