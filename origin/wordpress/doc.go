// Package wordpress reads a WordPress site as a [millrace.Source]. It uses the REST API, which
// WordPress has had since version 4.7. The site needs no plugin, and the package sends no
// credentials.
//
//	root, err := wordpress.Find(ctx, client, "https://example.com/blog/2026/a-post/")
//	s, err := wordpress.New(client, root, nil)
//
// # Pages
//
// Every item of a public type that has pages on the site is a page: posts, pages, and those custom
// types of plugins that are in the API. Attachments, menus, templates and other internal types are
// not pages. A custom type has pages only if the link of one of its latest items leads to a page
// for this item. The package reads only published items, because the API does not list drafts,
// private items and scheduled items. The API lists an item with a password without its content; the
// package treats this item as deleted.
//
// The package does not read types that have pages but are not in the API. Once a day, it fetches
// the site's sitemap and reports these types. Package origin/crawl reads them.
//
// The URL of a page is the link of its item, under the root. The fields of a page are the title,
// the author (the display name), the dates, the language, the tags, the summary and the content.
// The section is the first category, or otherwise the name of the type. The tags are all other
// terms. The summary is an excerpt that the author wrote; excerpts that WordPress generated from
// the content are ignored. If the site uses Yoast SEO, its description, locale and noindex are
// used. Otherwise, the language and noindex are those in the root's HTML, because WordPress adds
// noindex to all pages or to none. Shortcodes of removed plugins, such as [vc_row], are dropped. An
// item without content results in an alias without a page. HTMLSize is unknown, because the API
// returns the content, not the page.
//
// # Requests
//
// The first run lists all items, a hundred per request. A later run fetches the root, the types,
// and for each type the items that were modified last. If a type has more than a hundred items, the
// run also fetches those that were published last, because the publication of a scheduled item does
// not modify the item. If all of these are unchanged, the run ends. Otherwise, the run fetches the
// modified items with their content. A light listing of the type (ID, link, date) then shows which
// items were deleted, renamed or protected. A type with at most a hundred items needs no separate
// listing, because the first response contains all of them.
//
// A version is derived from the ID of the item, its modification date, and all other inputs.
// Therefore a change that does not modify the date is not detected: a renamed author or category,
// different output of a plugin, or a direct change of the database. If an item was modified less
// than two seconds ago, its version is unknown, because the item may change again in the same
// second.
//
// # Lists that change during a run
//
// Lists are in the order of the IDs, and each request begins at the last item of the previous
// response. If that item has moved, because an earlier item was deleted, the package requests
// earlier parts until it finds the item. Items that are published, edited or restored during a run
// are found by the next run, because the cursor contains the time before the list was read.
//
// modified_after compares dates in the site's local time, which may be set back by an hour once a
// year. This parameter only saves requests: the light listing finds the items that are missing from
// its results.
package wordpress
