// Package chunk divides the content of a page into pieces of bounded size:
// parts, each of which comes from one block, and passages, which protocols
// publish and searches find.
//
//   - [Parts]: block level, in document order. A heading is a part of its own.
//   - [Passages]: consecutive parts, as few passages as their size allows. A
//     heading is in the passage of the text below it.
//
// The id of a passage is made of its text, and where a text is cut depends on
// the text near the cut. So an edit renames the passages that it touches and
// some that follow, and leaves the others as they are, however long the page is.
//
// The package is pure. It takes time linear in the content, also for one
// paragraph of megabytes.
package chunk
