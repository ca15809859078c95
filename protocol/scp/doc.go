// Package scp implements the Site Content Protocol (SCP) 0.1: the pages of
// a section of a site in one file, a page a line, found by sitemap.xml. A
// snapshot has all of them, a delta those that have changed.
//
// The specification has no date and does not say where it is published. The
// namespace of its sitemap elements is below scp-protocol.org.
//
// [Open] reads one file in any of its codings. [Collection.Verify] checks coding,
// limits, checksum and every line, with bounded memory. [Collection.Pages] yields
// the pages.
//
// # What is carried
//
// URL, title, description, author, published, modified, language, JSON-LD and
// the blocks of a page. Every type of block becomes one of the ten of the
// specification:
//
//   - Definitions are a list of terms with what they mean; call-outs are
//     quotes that start with their title; formulas are code whose language is
//     "tex" or "mathml"; footnotes are text; embeds are links, or videos where
//     the provider shows nothing else.
//   - What stands inside an item follows on lines of its own, nested lists
//     with their marks. A quote is the text of its blocks.
//   - Captions are text blocks beside their image, table or code. A cell over
//     several columns or rows is followed by empty ones.
//   - A block whose URL is not one of http or https is its text.
//
// Lost are marks and links inside a text, anchors, the numbers of a list,
// header cells, summary, section, tags, kind, what other protocols keep, tracks
// that are no captions, the size of an audio, and creator and series of a video.
//
// Archives are not carried, nor are pages of forums, since what users have
// written needs their consent (Privacy Considerations), nor pages of another
// origin than the site's, nor a page whose line would be longer than 100 MB.
//
// What a page must have and has not: title is its first heading, else the last
// segment of its URL; description is the summary, else the title; language is
// the site's, else "und", as it is for a tag without the form of the schema;
// modified is published, else 1970; content is the title. Several JSON-LD
// elements travel as one graph, and come apart again if each says its context.
// An element that is no object, is not UTF-8 or nests too deep is dropped.
//
// A page of more than 1000 blocks stays whole: adjacent texts become one, from
// the end of the page; if that is not enough, lists become text, then quotes,
// links and headings; then all that is beyond.
//
// # Deltas
//
// A delta holds the changes of its period. Its since is the time of the last change
// before the period, so that the delta follows what a client read at that time.
// Deltas do not list deletions. To find them, a reader reads a new snapshot after
// seven deltas, and when the sitemap counts fewer pages. If another source reports
// deletions (ReaderOptions.Deletions), it reads a snapshot only if deltas are
// missing or not shorter. The Time of a checkpoint is when the oldest collection
// that was read was generated.
//
// # Deviations
//
//   - A file cannot contain its own hash. The checksum is that of the file
//     without the member checksum and its comma. It is written last in
//     collection. Reading, a checksum with "" or zeros in its place, or of the
//     pages alone, is accepted too, and [CheckResult] says which it was.
//     A file without a checksum (PublisherOptions.NoChecksum) has the hash of its
//     coded bytes as ETag.
//   - expires promises that a collection stays. One that may have a page which is
//     gone is withdrawn at once, since the owner may have hidden the page: its URL
//     answers 410 until then, and 404 where a host has files alone.
//   - Where the pages are on another origin than the documents, as when somebody
//     publishes a mirror, there is no sitemap and there are no collections: a
//     sitemap may name the pages of its own site alone, and readers, ours too,
//     skip all others.
//   - Fatal to a file are: what is no JSON of RFC 8259 in UTF-8, a blank line, a
//     required member of a page that is not there, a second line of metadata,
//     anything wrong with the first, a name there twice in it, nesting over 64
//     levels, a line over 100 MB. Nesting, since what is not read cannot be
//     called valid; the specification has no number.
//   - A page alone is skipped that the schema refuses otherwise: wrong types,
//     null included, dates, language tags, URLs that are not of http or https,
//     empty content, a known name twice, more than 1000 blocks.
//   - The page stays, without what is at fault, if a block, a source, a caption,
//     an icon or canonical has a URL that is not of http or https, if a block
//     has an unknown type, or a heading a level that is clamped. They are
//     counted. URLs with characters that RFC 3986 does not have are mended.
//   - Half of a surrogate pair counts as U+FFFD, as most decoders have it.
//   - Of several lines with one URL all are given, so that the last one counts.
//   - attributedTo and partOf may be objects with a name, as the text says and
//     the schema does not.
//   - The language pattern takes any subtags after a language of two or three
//     small letters, since its last part takes what those before it do not.
//   - canonical is read and of no use: the application of deltas knows a page by
//     its url. It is not written, url being the canonical one.
//   - Windows of zstd over 8 MiB are refused, as RFC 9659 wants it of the
//     content coding. Members and frames may be several, frames to be skipped
//     too; whatever else follows is an error.
//   - The ratio of 100 to 1 counts for the whole file, and from 1 MiB on. What is
//     written is not offered in a coding by which it would be more, large or not.
//   - Seconds have no fraction in pages, and a leap second is the one before.
package scp
