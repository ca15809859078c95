// Package snapshot reads the data-ai-* attributes of a page, by which its author
// describes the parts of the page to machines.
//
// [Of] makes a [Snapshot] of a document, [Lint] finds what is wrong with the
// attributes of one, and [Annotate] proposes attributes for a page that has
// none. [Extra] puts the snapshot of every page that is extracted into
// [millrace.Page.Extra], under "arc", as canonical JSON.
//
// # Attributes
//
// There are 32, in classes (see [Attributes]):
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
// What an element says becomes one part of the snapshot, by the first of these
// rules that is about it:
//
//  1. Structural attributes make containers. They nest in the order page,
//     section, group, subgroup, block, several on one element too, and become
//     the arrays sections, groups, subgroups and blocks of {name, …} in document
//     order. What stands where it cannot nest goes to the next container outwards
//     that it can be in. The page's is the root, wherever it stands: what is
//     outside of that element belongs to it as well. Where no element is the
//     page, page is the document's og:type, else the type of its JSON-LD, else
//     the last segment of its address.
//  2. Meta, relational, contextual and dynamic attributes and role, on a
//     container, are members of it by their own names, but for depends, which
//     is depends_on.
//  3. heading, summary and content: the value is the name of a member, whose
//     value is the element's text. If there is such a member, or the name is
//     one that the shape uses, it is an element {attr, key, text} of texts.
//  4. field: fields[]{field, label, type, context, behavior}. The label is
//     that which data-ai-label gives right before, label[for], or a label
//     around it. What has been put into an input is never looked at.
//  5. Of other elements, role, action and event: actions[]{role, intent,
//     behavior, event, trigger, action, transition, label}.
//  6. media: media is the first address that is absolute, media_items[]{name,
//     src, alt} has all. link: links[]{link, title, href}. Besides, every link,
//     ref and depends is in the root's relations[]{from, to, kind}.
//  7. Where visibility is hidden, or context is sensitive, and in all that is
//     inside, the part stays, without text and addresses. So it is for what HTML
//     hides. If the context of anything is sensitive or personal, the root says
//     so by ai_context, and by ai_tags: such a snapshot is for no public document.
//
// Parts of 3 to 6 are those of the innermost container around them.
//
// A document without attributes has no snapshot of its own: it is made of the
// page, by who publishes it. Only its forms are kept, as {"fields": […]}
// without page, to be added to that.
package snapshot
