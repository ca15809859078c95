// Package publish publishes the pages of a program in every protocol of millrace: TCT, ARC, SCP and
// OpenFeeder, Markdown by negotiation, llms.txt, feeds and sitemaps.
//
// The pages come from any [millrace.Source]: a folder (origin/folder), a mirror, [Pages] of a
// query, or the site that a [Handler] serves. [New] reads it, and returns an [net/http.Handler]
// that serves the machine documents and passes every other request to the program's own handler.
// [Build] writes the documents to a folder instead.
//
// Without [Options].Store, the state is lost at each start of the program. Pages without a date of
// their own then get the time of the start, and readers fetch the whole site again.
package publish
