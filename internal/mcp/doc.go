// Package mcp serves sites to agents over the Model Context Protocol (revisions 2024-11-05 to
// 2026-07-28, with the official SDK). The sites are those of a mirror, or the one that a
// gateway publishes.
//
// It has four read-only tools:
//
//	search        the passages that best answer a question
//	read_page     a page as Markdown, in parts of limited size
//	list_changes  pages added, updated and deleted since a cursor or a time
//	list_sites    the sites, with the terms of each
//
// With [Options.Web], read_page also reads pages of other sites, and add_site adds a site to
// the library.
//
// It also has resources: a list of the sites, and every page by its URL.
//
// Page content is untrusted. Every result names its source and the site's terms of use. The server
// puts the content between two marker lines, which no page can contain. It also removes invisible
// characters that models or terminals might obey.
//
// The server limits the size of requests, the length of results, the number of concurrent
// calls and the time of each call. A [Server] stores no state of HTTP clients between
// requests, so it has no sessions.
package mcp
