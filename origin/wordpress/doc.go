// Package wordpress is a WordPress site as a [millrace.Source], by the REST
// API that every WordPress has had since version 4.7. Nothing is installed on
// the site, and no credentials are sent.
//
//	root, err := wordpress.Find(ctx, client, "https://example.com/blog/2026/a-post/")
//	s, err := wordpress.New(client, root, nil)
//
// # What is a page
//
// Every item of a public type that has pages on the site: posts, pages, and
// custom types of plugins that have a place in the API. Attachments, menus,
// templates and other internals are none, and a custom type is one only if the
// link of one of its last items leads to a page. Only what is published is
// read: drafts, private and scheduled items are not listed to strangers, and an
// item with a password, which is listed without its content, is taken as gone.
//
// A type that has pages and no place in the API is not read. The site's own
// sitemap is asked for once a day, and the log warns of the types that it shows
// and the API does not; origin/crawl reads them.
//
// A page has its item's link as its URL, under the root, and speaks for its
// title, author (the display name), dates, language, section (the first
// category, else the name of the type), tags (all other terms), summary (an
// excerpt that somebody has written; one that WordPress has cut out of the
// content is none), and the content. Where the site has Yoast SEO, its
// description, locale and noindex count. The language is otherwise that of the
// root's HTML, and so is noindex: WordPress puts it on every page or none.
// What plugins that are gone have left, such as [vc_row], is dropped; an item
// without content is a name that has no page. The HTML size of a page is
// unknown, because the API returns only its content.
//
// # What a run costs
//
// The first run lists everything, a hundred items a request. A later one asks
// for the root, the types, and for each type the items that were modified
// last; of a type with more than a hundred items also those that were published
// last, because a scheduled item comes out without being modified. If these are
// as they were, that is all. Otherwise the items that were modified since come
// with their content, and a light listing of the type (id, link, date) tells
// what was deleted, renamed or protected. A type with at most a hundred items
// needs no listing: the first answer has been one.
//
// A version is made of the item's id, its date of modification, and of what
// decides beside the item. So a change that has no date is not seen: another
// name of an author or of a category, other output of a plugin, a direct
// change of the data base. A version within two seconds of its date is
// unknown: the item may change again in the same second.
//
// # Pages that shift
//
// Lists are read in the order of the ids, and each request begins at the last
// item of the one before. If that has moved, because something before it was
// trashed, the list steps back until it finds its place. What is published,
// edited or restored while a list is read is found by the next run, because the
// cursor stands for the time before the list.
//
// modified_after compares with the date in the site's own time zone, which
// goes back an hour once a year. It only saves requests here: what it does not
// tell of, the light listing does.
package wordpress
