// Package folder is a folder of static HTML as a [millrace.Source], the way
// Hugo, Jekyll, Sphinx, DocBook and other generators leave it.
//
//	f, err := folder.New("public", &folder.Options{Base: "http://127.0.0.1:8080/"})
//
// A page is a file whose name ends in .html, .htm or .xhtml. Its URL in the
// stream is its path, percent-encoded: "/docs/" for docs/index.html or
// docs/index.htm, "/docs/a.html" for docs/a.html. No pages, and why:
//
//   - names that start with a dot, except .well-known: silently left out;
//   - directories whose names start with an underscore, and files with such a
//     name that no other page links to: generators mark drafts and parts of pages
//     so. A link from a file with such a name does not count. Reported;
//   - error pages such as 404.html and the stubs of search engines: reported;
//   - what is empty, too large, no regular file, a symbolic link that leads
//     out of the folder, to nowhere or in a circle: reported.
//
// Other symbolic links are followed, as a web server does. Nothing outside
// of the folder can be read.
//
// # What a page is called
//
// The identity of a page ([millrace.Page.URL]) honours its rel=canonical.
// The site that the folder is deployed as, its home, is learned from the
// canonical links of the first pages, so that they need no configuration:
//
//   - a canonical link to the page itself, on the home or with the same path
//     on any host: the path of the file, or the cleaner form of it that the
//     link says, such as /about for about.html;
//   - to another path of the home, of which the folder has a file: the page is
//     a duplicate. It has that identity and speaks for nothing;
//   - to another path of the home without a file: that path. Of two files that
//     claim such a path, the one that was read last stands;
//   - to another site: that URL, absolute. The page belongs there.
//
// # When a page is read
//
// A version is made of the file's size, times and inode, and of the versions
// of the code that reads it: a walk over an unchanged folder opens no file. A
// file changed within the last two seconds has no version yet, because it may
// change again without a trace.
//
// Links to files whose names start with an underscore are looked for in pages
// that have changed since the last walk, and in every page if such a file is new
// or the link to it is gone. A folder without such files is not searched.
//
// The HTML size of a page is the size of its file. The size on the wire is unknown.
//
// If a deployment replaces the folder by another one of the same name, the new
// one is read. While the folder is missing, its pages are kept.
package folder
