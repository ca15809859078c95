// Package folder reads a folder of static HTML as a [millrace.Source]. Hugo, Jekyll, Sphinx,
// DocBook and other generators write such folders.
//
//	f, err := folder.New("public", &folder.Options{Base: "http://127.0.0.1:8080/"})
//
// A page is a file whose name ends in .html, .htm or .xhtml. Its URL in the stream is its
// percent-encoded path: "/docs/" for docs/index.html or docs/index.htm, "/docs/a.html" for
// docs/a.html. The package skips:
//
//   - names that start with a dot, except .well-known, without a report;
//   - directories whose names start with an underscore, with a report if they contain pages; and
//     files with such names, with a report, if no other page links to them. Generators use such
//     names for drafts, parts of pages and styles. A link from a file with such a name does not
//     count;
//   - error pages such as 404.html and the verification files of search engines, with a report;
//   - files that are empty, too large or not regular, and symbolic links that lead out of the
//     folder, to nothing or in a circle, with a report.
//
// Other symbolic links are followed, as by a web server. Nothing outside of the folder can be read.
//
// # Identity of a page
//
// The identity of a page ([millrace.Page.URL]) depends on its rel=canonical. The canonical links of
// the first pages determine the folder's home, which is the URL at which the folder is deployed.
// The home needs no configuration. A canonical link may lead:
//
//   - to the page itself, on the home or with the same path on any host. The identity is the path
//     of the file or its shorter form in the link, such as /about for about.html;
//   - to another path of the home with a file in the folder. The page is an alias of that page;
//   - to another path of the home without a file. That path is the identity. If two files claim it,
//     the one that was read last wins;
//   - to another site. That absolute URL is the identity.
//
// # Reading a page
//
// A version is derived from the size, times and inode of the file, and from the versions of the
// code that reads the file. A walk over an unchanged folder opens no file. A file that changed
// within the last two seconds has no version, because another change might leave no trace.
//
// The package searches the pages that have changed since the last walk for links to files whose
// names start with an underscore. If one of these files is new or is no longer linked, the package
// searches all pages. In a folder without these files, it searches none.
//
// A page's HTMLSize is the size of its file. The transferred size is unknown.
//
// If a deployment replaces the folder with another folder of the same name, the package reads the
// new folder. While the folder is missing, its stored pages are kept.
package folder
