// Package markdown reads a folder of Markdown files as a [millrace.Source]. The folder may be the
// input of Hugo, Jekyll, MkDocs or Docusaurus, or may be used without a generator.
//
//	f, err := markdown.New("my-site", nil)
//
// The package builds no site and runs no code. It converts the parse tree of [goldmark] to blocks,
// and front matter (YAML, TOML or JSON) to the fields of a page.
//
// # Pages
//
// A convention determines which files are pages. It is the convention of the generator whose
// configuration file is in the folder, or in its parent if the folder contains the content. If no
// configuration file is found, the convention is [Plain]. A page is a file that ends in .md,
// .markdown or .mdx, if the convention publishes it. Its URL in the stream is the name of the file
// in the project. Its identity is the path at which the generator would publish it:
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
// [New] rejects a project whose addresses depend on anything else, such as a plugin that moves
// pages.
//
// Themes, templates, data files and includes are not evaluated. Shortcodes, Liquid tags and
// components are replaced by their inner text. Some that are part of a generator are supported:
// ref, figure, highlight, youtube, notices, tabs, link, post_url. Code stays unchanged. Values of
// the configuration and the front matter are inserted. If a value is unknown, its sentence is
// omitted, and the number of omitted values is logged.
//
// Drafts, future pages and expired pages are not published, and neither is the second of two files
// with the same URL. The source reports them as absent, so that their stored pages are deleted. If
// the front matter of a file is invalid, or a file is not UTF-8, the source reports the line and
// the column, and the stored page is kept.
//
// The HTMLSize of a page is unknown, because the site is not built.
//
// # Links
//
// A link to a file becomes a link to the page of that file. A link to a missing page becomes text.
// All links are absolute. If the address of a page changes but its name does not, all pages are
// read again, because any of them may link to that page.
//
// # Reading a page
//
// A version is derived from the size, times and inode of the file, and from all other inputs: the
// configuration and the versions of the code. A walk reads the front matter of a file only if the
// file has changed, or if the file is a draft.
//
// Raw HTML is processed by [extract.Fragment].
//
// [goldmark]: https://github.com/yuin/goldmark
package markdown
