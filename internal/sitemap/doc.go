// Package sitemap reads the lists of URLs that sites publish: the sitemaps and sitemap indexes of
// sitemaps.org, protocol 0.9, as XML, and lists in plain text, one URL per line. It performs no
// network I/O, and only reads from the caller's [io.Reader].
//
// [Parse] detects the format by its bytes, not by its name or type. It decodes one layer of gzip.
// XML may be in any character set of the WHATWG list, named by a byte order mark or its
// declaration. Plain text is UTF-8, or UTF-16 with a byte order mark. Parse reads elements in the
// namespace of sitemaps.org, in Google's old namespaces, and in no namespace. It skips all others
// (images, videos, news, alternate languages) with their contents, except those in the namespace of
// [Options.Extension]. A lone ampersand is text, because many sites write it unescaped. Only the
// five entities of XML and character references are expanded.
//
// An index names sitemaps, which may name further sitemaps, including themselves. Therefore the
// caller must record the visited sitemaps and limit the depth.
//
// Parse limits the size, the number of entries, the depth of elements, the length of a URL, and the
// length of anything between two tags.
package sitemap
