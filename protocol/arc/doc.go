// Package arc implements the ARC sitemap, Appendix E of the ARC specification ("ARC Sitemap & AI
// Indexing Specification"), with version 2.1 of its schema. An ARC sitemap is one list of a site's
// pages for machines. Each page has a summary, tags, a checksum, and a snapshot, which contains the
// page's data-ai-* attributes.
//
// # Names
//
//   - /arc-sitemap.json is the list; /.well-known/arc-sitemap.json is the same
//     document under another name (E.5), /arc-sitemap.yaml its YAML form (E.3.3).
//   - /arc-sitemap-deltas/YYYY-MM-DD.json has the pages whose last change was on that day, in UTC
//     (E.8). A page that changed on several days is only in the delta of the last one. A reader
//     that reads all newer deltas misses nothing.
//   - /.well-known/arc-policy.json is the policy (E.6), if the owner has set one.
//
// # Carried fields
//
// The protocol carries URL, title, summary, tags, modified, kind, the snapshot, and the content in
// the snapshot. It loses the text itself, description, author, published, language, section and
// JSON-LD. The list omits archives (tag, date and search lists). It also omits pages whose
// canonical URL is on another origin, because no reader accepts them.
//
// The snapshot of a page with data-ai-* attributes is built when the page is stored, as
// [millrace.Page.Extra] under "arc". If the snapshot has no title, it gets the page's title. Any
// other page gets a snapshot of the same shape. Its member page is the page's kind, else the last
// segment of its path. It contains the title, the summary, the type of the JSON-LD, and one section
// per second-level heading, whose name is a slug of the heading.
//
// # Two forms
//
// The public list contains no snapshot with a sensitive or personal node (E.6). The entry of such a
// page has the tag "sensitive" or "personal" in place of the snapshot. A client with a read key
// gets the list with all snapshots at the same URL.
//
// # Deviations
//
//   - The specification's generator writes null for absent values, which its own
//     schema forbids (E.9). This publisher omits them. The reader treats null as
//     absent and reports it.
//   - ai_checksum is the page's revision, which changes with the page's content. The
//     example of the specification hashes raw HTML (E.10), which changes with every
//     template.
//   - E.6 requires auth_required for pages with a sensitive snapshot; E.4 defines
//     it as the right to view the page. Such a page is public, so the member is
//     false and the snapshot is absent.
//   - Pages that need authentication or must not be indexed are not listed, unless
//     the owner names them; then only with URL and flags. auth_required is false if
//     the view has the page, and absent otherwise.
//   - A deleted page is in the delta of that day with ai_indexable false and
//     robots_directive "noindex", since the specification defines no form for it. A
//     page that was never in a list is not in a delta.
//   - A day with more than 50,000 changes has no delta: the list is shorter. A day
//     also has none if it is more than 30 days before the newest change, or before
//     the first entry of the log, such as after a store was created again.
//   - This reader accepts at most 2 MiB of YAML, since a YAML parser holds the whole file in
//     memory.
//   - A snapshot over 1 MiB is replaced by one derived from the page.
package arc
