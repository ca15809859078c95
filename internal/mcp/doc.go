// Package mcp lets agents read sites over the Model Context Protocol (revisions 2024-11-05
// to 2026-07-28, with the official SDK). The sites are those of a mirror, or the one that a
// gateway publishes.
//
// It has four tools, all of them read-only:
//
//	search        the passages that best answer a question
//	read_page     a page as Markdown, in parts of limited size
//	list_changes  what was added, updated and deleted since a cursor or a time
//	list_sites    the sites, with the terms of each
//
// It also has resources: a list of the sites, and every page by its URL.
//
// Page content is untrusted. Every answer names its source and the site's terms of use. It
// puts the content between two marker lines, which no page can contain, and removes
// invisible characters that models or terminals might obey.
//
// The size of requests, the length of answers, the number of concurrent calls and the time
// of each are limited. A [Server] keeps no state of HTTP clients between requests, so it has
// no sessions to limit.
package mcp
