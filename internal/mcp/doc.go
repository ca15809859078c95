// Package mcp lets agents read sites by the Model Context Protocol (revisions
// 2024-11-05 to 2026-07-28, by the SDK of the protocol's own project): a
// mirror on a disk, or what a gateway publishes.
//
// It has four tools, none of which changes anything:
//
//	search        the passages that answer a question best
//	read_page     a page as Markdown, in parts of bounded size
//	list_changes  what was added, updated and deleted since a cursor or a time
//	list_sites    the sites, with the terms of each
//
// and resources: the sites, which clients can list, and every page by its URL.
//
// What pages say is data. Every answer says where it is from, and what the
// site asks of those who use it; it stands between two lines that no page can
// have in it, and has no characters that a terminal or a reader would obey
// without seeing them.
//
// Everything is bounded: the bytes of a request, the characters of an answer,
// the calls at once, and the time of each. A [Server] keeps nothing of its
// clients from one request of HTTP to the next: there are no sessions that
// could become many.
package mcp
