// Package markdown reads a tree of Markdown files as a [millrace.Source]. The tree may be the input
// of Hugo, Jekyll, MkDocs or Docusaurus, or use no generator.
//
//	f, err := markdown.New("my-site", nil)
//
// The package builds no site and runs no code. It converts the parse tree of [goldmark] to blocks,
// and front matter (YAML, TOML or JSON) to the fields of a page.
//
// # Pages
//
// The convention is that of the generator whose configuration file is in the folder, or in its
// parent if the folder contains the content. Without one, it is [Plain]. A page is a file that ends
// in .md, .markdown or .mdx, if the convention publishes it. Its URL in the stream is its name in
// the project. Its identity is the path at which the generator would publish it:
//
//   - Hugo: pretty and ugly URLs, permalinks, url and slug, bundles, section pages, languages by
//     suffix and by folder, mounts, cascades;
//   - Jekyll: posts, pages and collections with their permalinks, defaults, exclude and include.
//     HTML pages and the output of templates are missing;
//   - MkDocs: docs_dir, use_directory_urls, index and README, exclude_docs;
//   - Docusaurus: docs, blog and src/pages of the current version and the default language, number
//     prefixes, id and slug. Its configuration is a program; the package reads only literal values
//     in it;
//   - plain: a.md is /a/, index.md and README.md are the page of their folder.
//
// [New] refuses a project whose addresses depend on anything else, such as a plugin that moves
// pages.
//
// Themes, templates, data files and includes are not evaluated. Shortcodes, Liquid tags and
// components are replaced by their inner text. The package supports those that every site of a
// generator has: ref, figure, highlight, youtube, notices, tabs, link, post_url. Code stays
// unchanged. Values of the configuration and the front matter are inserted. If a value is unknown,
// its sentence is omitted, and the number of such sentences is logged.
//
// Drafts, future pages and expired pages are not pages, and neither is the second of two files with
// one URL. The source reports them as absent, and their stored pages are deleted. It also reports a
// file with broken front matter, or in another encoding than UTF-8, with line and column; its
// stored page is kept.
//
// The HTMLSize of a page is unknown, because the site is not built.
//
// # Links
//
// A link to a file becomes a link to its page. A link to a missing page becomes text. All links are
// absolute. If the address of a page changes but its name does not, all pages are read again,
// because any of them may link to the page.
//
// # Reading a page
//
// A version is built from the file's size, times and inode, and all other inputs: the configuration
// and the versions of the code. A walk reads the front matter of a file once for each of its
// states, and that of drafts every time.
//
// Raw HTML is processed by [extract.Fragment].
//
// [goldmark]: https://github.com/yuin/goldmark
package markdown
