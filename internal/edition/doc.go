// Package edition is what is published now: the documents of every protocol at
// one sequence number of the store, and how a request for one is answered.
//
// A protocol says what a [millrace.Document] is: its validator, its header and how
// to write its identity bytes. Everything that HTTP adds to that is here, once
// for all protocols: content codings and their validators, conditional requests,
// HEAD, ranges, digests, CORS.
//
//   - [Respond] answers one request for one document.
//   - [Server] publishes. Documents that grow with the site are built off the
//     request path: as trees of chunks, of which an edit writes few, or as files.
//     Then one compare-and-swap in the store moves what is published. All others
//     are rendered when they are first asked for and kept, per coding, in a cache
//     bounded in bytes.
//   - [Edition] is one such state. [Server.Current] gives the newest.
//
// A 304 and a HEAD never render anything. A cached document is valid for one
// edition; in the next one it is looked up again, and if its validator still
// stands its bodies stay too. So no response is older than the edition that
// was published when its request arrived.
package edition
