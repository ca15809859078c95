// Package chunk splits the content of a page into pieces of limited size.
//
//   - [Parts] are single blocks or pieces of them, in document order. A heading is a part
//     of its own.
//   - [Passages] are consecutive parts, as few passages as their size allows. A heading is
//     in the passage of the text below it. Protocols publish passages, and searches
//     return them.
//
// The id of a passage is a hash of its text, and the place of a cut depends on the text near
// it. So an edit changes the ids of the passages that it touches and of a few that follow.
// The others keep theirs, however long the page is.
//
// The package does no I/O. It takes time linear in the size of the content, even for one
// paragraph of megabytes.
package chunk
