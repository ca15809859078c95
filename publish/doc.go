// Package publish puts the pages of a program into every protocol that millrace
// knows: TCT, ARC, SCP and OpenFeeder, Markdown by negotiation, llms.txt, feeds and
// sitemaps.
//
// The pages come from any [millrace.Source]: a folder (origin/folder), a mirror, or
// what [Pages] makes of a query. [New] reads it, and returns an [net/http.Handler]
// that answers for the machine documents and hands every other request to the
// program's own handler. [Build] writes the documents to a folder instead.
//
// Without [Options].Store, each start of a program begins again: pages that do not
// give their own date have that of the start, and readers take the whole site once
// more.
package publish
