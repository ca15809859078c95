package scp

import "time"

// Schemas of all SCP objects, with members in the order of the specification's examples (Collection
// Metadata Schema, Page Object Schema). The parser, the writer and the checker rules use them.

var lineObject = objectOf("format/first-line", "",
	need("collection", &form[Metadata]{read: (*parser).collection}, func(m *Metadata) *Metadata { return m }))

var collectionObject = objectOf("format/first-line", "",
	need("id", nameForm, func(m *Metadata) *string { return &m.ID }).
		by("metadata/id", "id is a string of letters, digits, hyphens and underscores."),
	need("section", nameForm, func(m *Metadata) *string { return &m.Section }).
		by("metadata/section", "section is a string of letters, digits, hyphens and underscores."),
	need("type", kindForm, func(m *Metadata) *string { return &m.Type }).
		by("metadata/type", "type is snapshot or delta."),
	need("generated", instantForm, func(m *Metadata) *time.Time { return &m.Generated }).
		by("metadata/generated", "generated is a date-time."),
	may("since", instantForm, func(m *Metadata) *time.Time { return &m.Since }).
		by("metadata/since", "since is a date-time. A delta must have it."),
	need("version", versionForm, func(m *Metadata) *string { return &m.Version }).
		by("metadata/version", "version has the format MAJOR.MINOR."),
	may("checksum", checksumForm, func(m *Metadata) *string { return &m.Checksum }).
		by("checksum/form", "checksum is sha256: and 64 lower-case hexadecimal digits."))

var pageObject = objectOf("format/pages", "",
	need("url", urlForm, func(w *page) *string { return &w.URL }).
		by("page/url", "url is the full http or https URL of the page."),
	need("title", textForm, func(w *page) *string { return &w.Title }).
		by("page/title", "title is a string."),
	need("description", textForm, func(w *page) *string { return &w.Description }).
		by("page/description", "description is a string."),
	may("author", textForm, func(w *page) *string { return &w.Author }).
		by("page/author", "author is a string."),
	may("published", instantForm, func(w *page) *time.Time { return &w.Published }).
		by("page/published", "published is a date-time."),
	need("modified", instantForm, func(w *page) *time.Time { return &w.Modified }).
		by("page/modified", "modified is a date-time."),
	need("language", languageForm, func(w *page) *string { return &w.Language }).
		by("page/language", "language is a language tag."),
	may("canonical", canonicalForm, func(w *page) *string { return &w.Canonical }).
		by("page/canonical", "canonical is a URL."),
	may("schema", schemaForm, func(w *page) *[]byte { return &w.Schema }).
		by("page/schema", "schema is an object."),
	need("content", contentForm, func(w *page) *[]block { return &w.Content }).
		by("page/content", "content is an array of at least one block."),
	read[page]("collection", (*parser).ignore)) // ignored; the member belongs to a metadata line

var blockKinds = []*blockKind{
	blockOf(textBlock, "A text block has text.",
		need("text", textForm, blockText)),
	blockOf(headingBlock, "A heading block has a level and text.",
		need("level", levelForm, func(b *block) *int { return &b.Level }),
		need("text", textForm, blockText)),
	blockOf(linkBlock, "A link block has url and text, and may have rel, an array of strings.",
		need("url", linkForm, blockURL),
		need("text", textForm, blockText),
		may("rel", textsForm, func(b *block) *[]string { return &b.Rel })),
	blockOf(imageBlock, "An image block has url and alt.",
		need("url", linkForm, blockURL),
		need("alt", textForm, blockText)),
	blockOf(listBlock, "A list block has ordered, true or false, and items, an array of strings.",
		need("ordered", boolForm, func(b *block) *bool { return &b.Ordered }),
		need("items", textsForm, func(b *block) *[]string { return &b.Items })),
	blockOf(codeBlock, "A code block has code, and may have a language.",
		may("language", textForm, func(b *block) *string { return &b.Language }),
		need("code", textForm, blockText)),
	blockOf(tableBlock, "A table block has rows, an array of arrays of strings.",
		need("rows", rowsForm, func(b *block) *[][]string { return &b.Rows })),
	blockOf(quoteBlock, "A quote block has text, and may have a citation.",
		need("text", textForm, blockText),
		may("citation", textForm, func(b *block) *string { return &b.Citation })),
	blockOf(videoBlock, "A video block has a name and at least one URL.",
		mediaTitle,
		need("url", sources(videoSource), blockMedia),
		mediaDuration,
		may("width", naturalForm, func(b *block) *int { return &b.Media.Width }),
		may("height", naturalForm, func(b *block) *int { return &b.Media.Height }),
		mediaIcon,
		mediaSummary,
		may("captions", listOf(captionObject), func(b *block) *[]caption { return &b.Media.Captions }).
			by("blocks/captions", "captions are objects with language, url and label."),
		mediaChapters,
		mediaTranscript),
	blockOf(audioBlock, "An audio block has a name and at least one URL.",
		mediaTitle,
		need("url", sources(audioSource), blockMedia),
		mediaDuration,
		mediaIcon,
		mediaSummary,
		may("attributedTo", namedForm, func(b *block) *string { return &b.Media.AttributedTo }),
		may("partOf", namedForm, func(b *block) *string { return &b.Media.PartOf }),
		mediaChapters,
		mediaTranscript),
}

// blockKind is the schema of one block type.
type blockKind struct {
	name  blockType
	start []byte // usual beginning of a block
	*object[block]
}

// anyBlock is the schema of unknown block types.
var anyBlock = blockOf("", "")

func blockOf(name blockType, says string, members ...member[block]) *blockKind {
	first := read[block]("type", (*parser).ignore) // the type was already read
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
	mediaTitle    = need("name", textForm, func(b *block) *string { return &b.Media.Name })
	mediaDuration = may("duration", durationForm, func(b *block) *string { return &b.Media.Duration }).
			by("blocks/duration", "duration is an ISO 8601 duration of hours, minutes and seconds.")
	mediaIcon = may("icon", imageForm, func(b *block) *string { return &b.Media.Icon }).
			by("blocks/icon", "icon is an object of type Image.")
	mediaSummary  = may("summary", textForm, func(b *block) *string { return &b.Media.Summary })
	mediaChapters = may("chapters", listOf(chapterObject), func(b *block) *[]chapter { return &b.Media.Chapters }).
			by("blocks/chapters", "chapters are objects with time, in whole seconds, and title.")
	mediaTranscript = may("transcript", textForm, func(b *block) *string { return &b.Media.Transcript })
)

// Objects in blocks. Violations in them are reported under the rule of the block.
var (
	audioSource = objectOf("", "",
		need("href", linkForm, func(s *source) *string { return &s.Href }),
		need("mediaType", textForm, func(s *source) *string { return &s.MediaType }))
	videoSource   = objectOf("", "", append(audioSource.members, read[source]("rel", func(p *parser) { p.str() }))...)
	captionObject = objectOf("", "",
		need("language", textForm, func(c *caption) *string { return &c.Language }),
		need("url", linkForm, func(c *caption) *string { return &c.URL }),
		need("label", textForm, func(c *caption) *string { return &c.Label }))
	chapterObject = objectOf("", "",
		need("time", naturalForm, func(c *chapter) *int { return &c.Time }),
		need("title", textForm, func(c *chapter) *string { return &c.Title }))
	imageObject = objectOf("", "",
		may("type", is("Image"), self),
		may("url", linkForm, self))
	namedObject = objectOf("", "",
		need("name", textForm, self))
)

func self(s *string) *string { return s }
