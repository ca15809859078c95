// Package wordpress reads a WordPress site as a [millrace.Source]. It uses the REST API, which
// WordPress has had since version 4.7. The site needs no plugin, and the package sends no
// credentials.
//
//	root, err := wordpress.Find(ctx, client, "https://example.com/blog/2026/a-post/")
//	s, err := wordpress.New(client, root, nil)
//
// # Pages
//
// Every item of a public type that has pages on the site is a page: posts, pages, and custom types
// of plugins that the API has. Attachments, menus, templates and other internal types are not. A
// custom type has pages only if the link of one of its latest items leads to a page. The package
// reads only published items: the API does not list drafts, private and scheduled items. It lists
// an item with a password without its content, and the package treats it as deleted.
//
// The package does not read a type that has pages and is not in the API. It fetches the site's
// sitemap once a day and logs a warning for such types. Package origin/crawl reads them.
//
// A page's URL is its item's link, under the root. Its fields are the title, the author (the
// display name), the dates, the language, the tags, the summary and the content. The section is the
// first category, else the name of the type. The tags are all other terms. The summary is an
// excerpt by the author, not one that WordPress generated from the content. If the site has Yoast
// SEO, its description, locale and noindex are used. Otherwise, the language and noindex are those
// of the root's HTML, because WordPress adds noindex to all pages or none. Shortcodes of removed
// plugins, such as [vc_row], are dropped. An item without content results in an alias without a
// page. HTMLSize is unknown, because the API returns the content and not the page.
//
// # Requests
//
// The first run lists everything, a hundred items per request. A later run fetches the root, the
// types, and for each type the items that were modified last. For a type with more than a hundred
// items it also fetches those that were published last, because publishing a scheduled item does
// not modify it. If all of these are unchanged, the run ends. Otherwise, it fetches the modified
// items with their content. A light listing of the type (ID, link, date) then shows which items
// were deleted, renamed or protected. A type with at most a hundred items needs no listing, because
// the first response contains it.
//
// A version is built from the item's ID, its modification date, and all other inputs. A change
// without a date is therefore not detected: a renamed author or category, other output of a plugin,
// or a direct change of the database. A version within two seconds of its date is unknown, because
// the item may change again in the same second.
//
// # Lists that change during a run
//
// Lists are in the order of the IDs, and each request begins at the last item of the previous one.
// If that item has moved, because an earlier one was deleted, the package requests earlier parts
// until it finds the item. The next run finds items that are published, edited or restored during a
// run, because the cursor holds the time before the list.
//
// modified_after compares dates in the site's time zone, which goes back an hour once a year. It
// only saves requests, because the light listing finds the items that it misses.
package wordpress
