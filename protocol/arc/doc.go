// Package arc implements the ARC sitemap, Appendix E of the ARC
// specification ("ARC Sitemap & AI Indexing Specification"), version 2.1 of
// its schema: one list of a site's pages for machines, each with a summary,
// tags, a checksum and a snapshot, which is what the page's data-ai-*
// attributes say of it.
//
// # Names
//
//   - /arc-sitemap.json is the list; /.well-known/arc-sitemap.json is the same
//     document under another name (E.5), /arc-sitemap.yaml its twin in YAML (E.3.3).
//   - /arc-sitemap-deltas/YYYY-MM-DD.json is what changed last on that day, in
//     UTC (E.8). A page that changed on several days is in the delta of the
//     last one, so that a reader of all newer days misses nothing.
//   - /.well-known/arc-policy.json is the policy (E.6), if the owner has said
//     anything.
//
// # What is carried
//
// URL, title, summary, tags, modified, kind, the snapshot, and as much of the
// content as the snapshot says. Pages whose canonical URL is on another origin
// are not listed, since no reader takes them from here. Lost are the text itself, description, author,
// published, language, section and JSON-LD. Archives (tag, date and search
// lists) are not listed.
//
// The snapshot of a page with data-ai-* attributes is made when the page is
// taken in, and is [millrace.Page.Extra] under "arc"; if it has no title, it
// gets the page's. Any other page gets one in the same shape: page is its
// kind, else the last segment of its path; title, summary and the type of its
// JSON-LD; one section for every second-level heading, with a slug as name.
//
// # Two forms
//
// A snapshot with a sensitive or personal node is not in the list that
// everybody gets (E.6): there the entry stands without one, with the tag
// "sensitive" or "personal". A client with a read key gets the list with
// every snapshot, at the same URL.
//
// # Deviations
//
//   - The specification's generator writes null for what a page has not, which
//     its own schema refuses (E.9). What is absent is left out here; reading,
//     null is absent, and reported.
//   - ai_checksum is the page's revision, which moves with anything that the
//     page says. Its example hashes raw HTML (E.10), which moves with every
//     template.
//   - E.6 asks for auth_required on what has a sensitive snapshot; E.4 says
//     that it is about viewing the page. Such a page can be viewed by anybody,
//     so the member is false and the snapshot is absent.
//   - Pages that need authentication or must not be indexed are not listed,
//     unless the owner names them: then by URL and flags alone. auth_required is
//     false if the view has the page, and absent otherwise.
//   - A page that is gone is in the delta of that day with ai_indexable false
//     and robots_directive "noindex": the specification has no form for it. A
//     page that no list has named is not in a delta.
//   - A day with more than 50,000 changes has no delta: the list is shorter.
//     Nor has one that is more than 30 days before the newest change, or
//     before the first entry of the log, as after a store was created again.
//   - A site with more than 20,000 pages has no twin in YAML: readers of YAML
//     hold all of a file in memory. This one reads at most 2 MiB of it.
//   - A snapshot over 1 MiB is replaced by one that is made of the page.
package arc
