// Package publish publishes the pages of a program in every protocol of millrace: TCT, ARC, SCP and
// OpenFeeder, Markdown by negotiation, llms.txt, feeds and sitemaps.
//
// The pages come from any [millrace.Source]: a folder (origin/folder), a mirror, the results of a
// query ([Pages]), or the site that a handler serves ([Handler]). [New] reads the source, and
// returns an [net/http.Handler] that serves the machine documents and passes all other requests to
// the program's own handler. [Build] writes the documents to a folder instead.
//
// Without [Options].Store, the state is lost when the program ends. Then, after each start, pages
// without a date of their own get the time of the start, and readers fetch the whole site again.
package publish
