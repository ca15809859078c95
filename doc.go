// Package millrace is the vocabulary of millrace: what a page is, what a
// source of pages is, and what is published of them.
//
// A protocol is a pair of functions: it publishes a [View] over HTTP, and it
// reads a remote site back as a [Source]. The store gives sources, a folder of
// HTML is a source, and so is every reader of a remote site. Whatever is true
// of one protocol is therefore one sentence:
//
//	read(publish(view)) == map(Carry, view)
//
// where Carry says what the protocol can carry of a [Page].
//
// The words, from small to large: a [Page] has fields and [Block] values; a
// [Change] puts or deletes a page, or carries a [Checkpoint]; a [Source] yields changes, a [Sink] applies
// them; a [View] is a source that stands still, and a [Publisher] makes
// [Document] values of it.
//
// This package imports the standard library only, and every other package of
// millrace imports this one.
package millrace
