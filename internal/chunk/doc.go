// Package chunk splits the content of a page into pieces of limited size.
//
//   - [Parts] are single blocks or pieces of them, in document order. A heading is a separate part.
//   - [Passages] are groups of consecutive parts, as few as the maximum size of a passage allows.
//     A heading is in the passage of the text below it. Protocols publish passages, and searches
//     return them.
//
// The id of a passage is a hash of its text, and the position of a cut depends on the text near it.
// An edit therefore changes only the ids of the edited passages and of a few passages after them,
// even on a long page.
//
// The package does no I/O. Its time is linear in the size of the content, even for one paragraph of
// megabytes.
package chunk
