// Package sitemap reads the lists of URLs that sites publish: the sitemaps
// and sitemap indexes of sitemaps.org, protocol 0.9, as XML, and lists in
// plain text, one URL a line. It is pure: it reads from what the caller has
// opened, and fetches nothing.
//
// [Parse] tells the forms apart by their bytes, whatever name or type they
// came with. Gzip is undone once. XML may be in any character set of the
// WHATWG list, named by a byte order mark or its declaration; text is UTF-8,
// or UTF-16 with a mark. Elements count in the namespace of sitemaps.org, in
// the old ones of Google, and in none. All others (images, videos, news,
// alternate languages) are skipped with what is in them; [Options] can ask for
// those of one protocol. An ampersand that starts no entity stands for itself,
// as many sites write it; no entity but the five of XML and those by number is
// ever expanded.
//
// An index names sitemaps, which may name sitemaps again, themselves among
// them: whoever follows them remembers where it has been, and how deep it is.
//
// Everything is bounded: the size, the number of entries, the depth of
// elements, the length of a URL and of anything between two tags.
package sitemap
