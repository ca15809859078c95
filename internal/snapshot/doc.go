// Package snapshot reads the data-ai-* attributes of a page, with which the author describes the
// parts of the page to machines.
//
// [Of] builds a [Snapshot] of a document. [Lint] reports errors in the attributes of a
// document. [Annotate] proposes attributes for a page that has none. [Extra] stores the
// snapshot of every extracted page in [millrace.Page.Extra], under "arc", as canonical JSON.
//
// # Attributes
//
// There are 32 attributes in these classes (see [Attributes]):
//
//   - structural: page section group subgroup block
//   - content: heading summary content field label media
//   - meta: type status context category visibility
//   - relational: link ref depends rel source
//   - contextual: intent purpose scope mode behavior
//   - dynamic: event trigger state action transition
//   - and role
//
// # Mapping
//
// The attributes of an element become one part of the snapshot. The first of these rules that
// applies decides:
//
//  1. Structural attributes create containers. They nest in the order page,
//     section, group, subgroup, block, and one element may create several.
//     They become the arrays sections, groups, subgroups and blocks of {name, …}
//     in document order. A container that cannot nest in the one around it goes
//     to the next one outwards that can hold it. The page's container is the root,
//     wherever its element is, and also holds what is outside of that element. If
//     no element is the page, page is the document's og:type, else the type of
//     its JSON-LD, else the last segment of its URL.
//  2. Meta, relational, contextual and dynamic attributes and role, on a
//     container, are members of it with the same names, except that depends
//     becomes depends_on.
//  3. heading, summary and content: the value is the name of a member, whose
//     value is the element's text. If that member exists, or the shape uses the
//     name, the text becomes an element {attr, key, text} of texts instead.
//  4. field: fields[]{field, label, type, context, behavior}. The label is the
//     data-ai-label directly before, label[for], or a label around it. The value
//     of an input is never read.
//  5. On other elements, role, action and event: actions[]{role, intent,
//     behavior, event, trigger, action, transition, label}.
//  6. media: media is the first absolute URL, and media_items[]{name, src, alt}
//     contains all. link: links[]{link, title, href}. In addition, every link, ref and
//     depends is in the root's relations[]{from, to, kind}.
//  7. If visibility is hidden or context is sensitive, the part and everything in
//     it is kept without text and URLs. The same applies to elements that HTML
//     hides. If any context is sensitive or personal, the root has it in
//     ai_context and ai_tags. Do not publish such a snapshot.
//
// Parts of rules 3 to 6 belong to the innermost container around them.
//
// A document without attributes has no snapshot of its own: the publisher derives one from the
// page. Only the fields of its forms are stored, as {"fields": […]} without page, for the
// publisher to add.
package snapshot
