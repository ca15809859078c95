// Package extract turns the HTML of one page into a [millrace.Page]: what the
// page says, without its menus, banners and footers. It is pure: no I/O, no
// state, and the same input gives the same page.
//
// [HTML] works in these steps, each in files of its own:
//
//   - charset.go and parse.go: bytes to a tree. The character set comes from
//     the byte order mark, the HTTP header, the document and its bytes. Input
//     that nests deeper than the parser allows is flattened, not refused.
//   - stream.go: parts that came late, put where they belong.
//   - collect.go: one pass over the tree, which weighs every block element and
//     notes what the later steps look for.
//   - locate.go, furniture.go, sections.go, repeats.go, around.go, forum.go: the root of the
//     content and the subtrees to leave out, by tag, role, position and share of
//     links. Names of classes break ties. Ids and classes count by themselves
//     only where a tool's own elements are known by them, such as a consent
//     dialogue's.
//   - rules*.go: what the owner of a site says of elements, by selectors. What
//     is dropped is taken out of the tree before anything is weighed; what is
//     kept stays, wherever it stands.
//   - wall.go: pages that stand in place of content.
//   - walk.go, walk_*.go, inline.go: one walk over what is left, to blocks.
//   - links.go, login.go: what a crawler needs beside the page.
//   - meta*.go, title.go, author*.go, date*.go, schema*.go, kind.go: the other
//     fields, each with its source.
//   - extra.go: what single protocols want of a document, by functions of theirs.
//
// [Fragment] does the walk alone, for HTML that is content from end to end.
//
// [Rules] correct all pages of a site, by selectors of its owner. [Result] lists
// what they change.
//
// Time and memory grow linearly with the input, with rules as well.
package extract

// Version is the version of the extractor. It rises whenever the same HTML
// may give another page, and is a part of fingerprints.
const Version = 5
