// Package arc implements the ARC sitemap, Appendix E of the ARC specification ("ARC Sitemap &
// AI Indexing Specification"), version 2.1 of its schema. It is one list of a site's pages for
// machines. Each page has a summary, tags, a checksum, and a snapshot, which contains the
// page's data-ai-* attributes.
//
// # Names
//
//   - /arc-sitemap.json is the list; /.well-known/arc-sitemap.json is the same
//     document under another name (E.5), /arc-sitemap.yaml its YAML form (E.3.3).
//   - /arc-sitemap-deltas/YYYY-MM-DD.json has the pages that changed last on that
//     day, in UTC (E.8). A page that changed on several days is only in the delta
//     of the last one. A reader of all newer days misses nothing.
//   - /.well-known/arc-policy.json is the policy (E.6), if the owner has set one.
//
// # Carried fields
//
// The protocol carries URL, title, summary, tags, modified, kind, the snapshot, and the
// content in the snapshot. It loses the text itself, description, author, published, language,
// section and JSON-LD. The list omits pages whose canonical URL is on another origin, since no
// reader accepts them, and archives (tag, date and search lists).
//
// The snapshot of a page with data-ai-* attributes is built when the page is stored, and is
// [millrace.Page.Extra] under "arc". If it has no title, it gets the page's. Any other page
// gets one in the same shape. Its page is the page's kind, else the last segment of its path.
// It has the title, the summary, the type of the JSON-LD, and one section for every
// second-level heading, with a slug as name.
//
// # Two forms
//
// The public list does not contain a snapshot with a sensitive or personal node (E.6). Its
// entry has no snapshot, but the tag "sensitive" or "personal". A client with a read key gets
// the list with every snapshot, at the same URL.
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
//   - A site with more than 20,000 pages has no YAML form, since YAML readers hold
//     the whole file in memory. This reader accepts at most 2 MiB of YAML.
//   - A snapshot over 1 MiB is replaced by one derived from the page.
package arc
