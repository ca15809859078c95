// Package extract converts the HTML of one page to a [millrace.Page]: its content without menus,
// banners and footers. It is pure: no I/O, no state, and the same input always gives the same page.
//
// [HTML] works in the following steps:
//
//   - charset.go and parse.go: bytes to a tree. The character set comes from
//     the byte order mark, the HTTP header, the document and its bytes. Input
//     that nests deeper than the parser allows is flattened, not rejected.
//   - stream.go: moves parts that were streamed late to their places.
//   - collect.go: one pass over the tree, which counts the words of every block
//     element and records what the later steps need.
//   - locate.go, boilerplate.go, sections.go, repeats.go, forum.go: find the root
//     of the content and the subtrees to leave out, by tag, role, position and
//     share of links. Class names break ties. An id or a class alone decides only
//     if it identifies the elements of a known tool, such as a consent dialog.
//   - classify*.go: corrects the result by a small forest of decision trees over
//     the form of each text, its neighbors and its ancestors. bench/train trains
//     it.
//   - rules*.go: the site owner's rules, given as selectors. Dropped elements are
//     removed from the tree before any counting; kept elements stay wherever
//     they are.
//   - wall.go: pages shown in place of content.
//   - walk.go, walk_*.go, inline.go: one walk over the rest, to blocks.
//   - links.go, login.go: what a crawler needs in addition to the page.
//   - meta*.go, title.go, author*.go, date*.go, schema*.go, kind.go: the other
//     fields, each with its source.
//   - extra.go: data of single protocols, computed by functions that the protocols
//     register.
//
// [Fragment] only does the walk, for HTML that consists entirely of content.
//
// [Rules] are selectors by which the owner of a site corrects the extraction of all its pages.
// [Result] lists the changes that they cause.
//
// Time and memory grow linearly with the input, with and without rules.
package extract

// Version is the version of the extractor. It increases whenever the same HTML may give a different
// page. It is part of fingerprints.
const Version = 8
