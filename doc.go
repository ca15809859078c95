// Package millrace defines the types that all packages of millrace share: pages, sources of pages,
// and the documents that protocols publish.
//
// A protocol is a pair of functions: one publishes a [View] over HTTP, the other reads a
// remote site as a [Source]. The store, a folder of HTML and every reader of a remote site are
// sources. Each protocol satisfies one equation:
//
//	read(publish(view)) == map(Carry, view)
//
// Carry reduces a [Page] to the fields that the protocol can carry.
//
// The types build on each other. A [Page] has fields and [Block] values. A [Change] puts or deletes
// a page, or contains a [Checkpoint]. A [Source] yields changes, and a [Sink] applies them. A
// [View] is an immutable source, and a [Publisher] renders it as [Document] values.
//
// This package imports only the standard library. All other packages of millrace import it.
package millrace
