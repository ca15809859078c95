// Package scp implements the Site Content Protocol (SCP) 0.1. It publishes the pages of each
// section of a site in one file, one page per line. Clients find the files in sitemap.xml. A
// snapshot contains all pages, and a delta contains the changed pages.
//
// The specification has no date and no published location. The namespace of its sitemap elements is
// a URL of scp-protocol.org.
//
// [Open] reads one file in any coding. [Collection.Verify] checks coding, limits, checksum and
// every line, with bounded memory. [Collection.Pages] yields the pages.
//
// # Carried fields
//
// SCP carries URL, title, description, author, published, modified, language, JSON-LD and the
// blocks of a page. Every block becomes one of the specification's ten types:
//
//   - Definitions become a list of terms with their meanings. Call-outs become quotes that start
//     with their title. Formulas become code with the language "tex" or "mathml". Footnotes become
//     text. Embeds become links, or videos if the provider embeds only videos.
//   - The text of blocks inside a list item follows on separate lines, with markers for nested
//     lists. A quote becomes the text of its blocks.
//   - Captions become text blocks next to their image, table or code. Empty cells follow a cell
//     that spans several columns or rows.
//   - A link, image or recording whose URL is not http or https becomes text.
//
// SCP does not carry formatting or links inside text, anchors, start numbers of lists, header
// cells, summary, section, tags, kind, or the fields of other protocols. It loses tracks other than
// captions and subtitles, the width and height of audio, and the creator and series of videos.
//
// SCP does not carry archives, forum pages, pages of another origin, or pages whose line would
// exceed 100 MB. Forums are excluded because user-generated content needs consent (Privacy
// Considerations).
//
// A required member that the page lacks gets a default. title is the first heading, else the last
// segment of the URL. description is the summary, else the title. language is the site's, else
// "und". The same defaults replace a language tag that the schema rejects. modified is the
// published date, else the start of 1970. content is the title. Several JSON-LD elements become one
// graph, which the reader splits again if each element has its own context. An element is dropped
// if it is not an object, is not UTF-8 or nests too deep.
//
// A page of more than 1000 blocks keeps its text: adjacent texts are joined, from the end of the
// page. If that is not enough, lists become text, then quotes, links and headings, then all blocks
// over the limit.
//
// # Deltas
//
// A delta contains the changes of its period. Its member since is the time of the last change
// before the period, so that the delta follows the state that a client read at that time. Deltas do
// not list deletions. To find them, a reader reads a new snapshot after seven deltas, and when the
// sitemap declares fewer pages. If the server can compress a snapshot with the previous one as the
// dictionary, the reader reads that snapshot instead of the deltas. This transfers only the
// changes, and shows the deletions. The Time of a checkpoint is the generation time of the oldest
// collection that was read.
//
// # Deviations
//
//   - A file cannot contain its own hash. The publisher computes the checksum over the file without
//     the checksum member and its comma, and writes the member last in collection. The reader also
//     accepts a checksum that was computed with "" or zeros in its place, or over the pages alone;
//     [CheckResult] reports which. A file without a checksum (PublisherOptions.NoChecksum) has the
//     hash of its coded bytes as ETag.
//   - expires promises that a collection remains available. A collection that may contain a removed
//     page is withdrawn at once, because the owner may have hidden the page. Until the promised
//     time, its URL returns 410, or 404 on a host that serves only files.
//   - If the pages have a different origin from the documents, as in a published mirror, there is
//     no sitemap and there are no collections. A sitemap must list only pages of its own site, and
//     readers, including this one, skip others.
//   - These errors are fatal to a file: invalid JSON (RFC 8259) or UTF-8, a blank line, a page
//     without a required member, a second metadata line, any error or duplicate name in the first
//     line, nesting over 64 levels, a line over 100 MB. The specification has no limit for nesting;
//     deeper values are not parsed, so the reader cannot tell whether they are valid.
//   - Other violations of the page schema skip only the page: wrong types including null, dates,
//     language tags, URLs other than http and https, empty content, duplicate known names, more
//     than 1000 blocks.
//   - The page is kept without the invalid part if a block, a source, a caption, an icon or
//     canonical has a URL other than http or https, or if a block has an unknown type. A heading
//     level out of range is clamped. The reader counts all of these violations. URLs with
//     characters outside RFC 3986 are repaired.
//   - An unpaired surrogate is read as U+FFFD, as in most decoders.
//   - If several lines have the same URL, all are yielded, so the last one wins.
//   - attributedTo and partOf may be objects with a name, as in the text of the specification but
//     not in its schema.
//   - The language pattern accepts any subtags after a language of two or three lower-case letters,
//     because the last part of the pattern matches any subtag.
//   - canonical is parsed and ignored, because Delta Application identifies a page by its url. It
//     is not written: url is canonical.
//   - zstd windows over 8 MiB are refused, as RFC 9659 requires of the content coding. Several gzip
//     members or zstd frames are accepted, including skippable frames. Any other trailing data is
//     an error.
//   - The ratio limit of 100 to 1 applies to the whole file, from 1 MiB on. The publisher omits a
//     coding in which a file would exceed it, at any size.
//   - Times in pages are in whole seconds. A leap second becomes the second before it.
package scp
