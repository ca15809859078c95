// Package markdown is a tree of Markdown as a [millrace.Source], the way Hugo,
// Jekyll, MkDocs and Docusaurus have it before they build a site, or without any
// of them.
//
//	f, err := markdown.New("my-site", nil)
//
// Nothing is built and nothing is run: [goldmark]'s tree becomes blocks, and
// front matter (YAML, TOML or JSON) the fields of the page.
//
// # What is a page
//
// The convention is that of the generator whose configuration file is in the
// folder, or in the one above if the folder is its content; else [Plain]. A
// page is a file that ends in .md, .markdown or .mdx, where the convention
// makes a page of it. Its URL in the stream is its name in the project; its
// identity is where the generator would put it:
//
//   - Hugo: pretty and ugly URLs, permalinks, url and slug, bundles, section
//     pages, languages by suffix and by folder;
//   - Jekyll: posts, pages and collections with their permalinks, defaults,
//     exclude and include. HTML pages and what templates make are not there;
//   - MkDocs: docs_dir, use_directory_urls, index and README, exclude_docs;
//   - Docusaurus: docs, blog and src/pages of the current version and the
//     default language, number prefixes, id and slug; of its configuration,
//     which is a program, only what is written out in it;
//   - plain: a.md is /a/, index.md and README.md are the page of their folder.
//
// Themes, templates, data files, cascades and includes are not evaluated.
// Shortcodes, Liquid and components give way to their inner text; those that
// every site of the generator has (ref, figure, highlight, youtube, notices,
// tabs, link, post_url) are known. Code stays as it is.
//
// Drafts, pages of the future, expired pages, and of two files with one URL the
// second, are no pages, and the source is sure of it: they are reported, and go
// from where they were. A file with broken front matter or in another encoding
// than UTF-8 is reported too, with its line and column, and stays as it was.
//
// The HTMLSize of a page is unknown, because the site is not built.
//
// # Links
//
// A link to a file is a link to its page; what leads to no page is text. All
// links are absolute. When a page gets another address for another reason than
// its name, all pages are read again, because any of them may link to it.
//
// # When a page is read
//
// A version is made of the file's size, times and inode, and of what decides
// beside it: the configuration and the versions of the code. A walk reads the
// front matter of a file once for each state of it, and again of drafts.
//
// Raw HTML goes through [extract.Fragment].
//
// [goldmark]: https://github.com/yuin/goldmark
package markdown
