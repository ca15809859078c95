// Package edition builds and serves editions. An edition contains the documents of every protocol
// at one sequence number of the store.
//
// A protocol defines a [millrace.Document]: its validator, its header and its identity bytes. This
// package implements HTTP for all protocols: content codings and their validators, conditional
// requests, HEAD, ranges, digests and CORS.
//
//   - [Respond] responds to a request for a document.
//   - [Server] builds and serves editions. In the background, it builds the documents whose size
//     grows with the site, as trees of chunks or as artifacts. After an edit, it writes only a few
//     chunks. One compare-and-swap in the store then publishes the edition. The server renders each
//     of the other documents at the first request, and caches it in each coding.
//   - [Edition] is one published state. [Server.Current] returns the newest one.
//
// Any number of processes may publish one publication. One of them is the builder, and the others
// serve its editions; see [Server.Builder].
//
// A 304 never renders a document, and a HEAD renders only documents with DigestETag. A cached
// document is valid for one edition. In the next edition, the server looks the document up again.
// If the validator is the same, the bodies stay in the cache. A response is never older than the
// edition that was current when its request arrived.
//
// If a client has an earlier version of a document, the server can send the current one compressed
// with that version as the dictionary (RFC 9842).
package edition
