// Package discover finds every way into a site, what each of them costs, and
// the cheapest one.
//
//	site, err := discover.Look(ctx, client, "https://example.com/", &discover.Options{Rooms: all.Protocols()})
//	plan := site.Plan(nil)
//
// # Looking
//
// [Look] asks for robots.txt, then for the root, then lets each room look where
// its specification lets a client look, asks for the documents about the use of
// the content, and last counts the plain web: the sitemaps, of an index some,
// and three pages. That is some ten requests of a site that has nothing but
// pages, and some twenty-five of one that speaks five protocols. Nothing is
// asked for twice: what one room has read, the next one finds. A budget of
// requests, bytes and time bounds it, whatever the server does.
//
// Whoever wants the best way, and not all of them, looks in brief
// ([Options].Brief): first for files of all pages ([protocol.Protocol].Collections).
// If one is there that has what the sitemaps name, and neither it nor the
// refreshes by it, beside the pages that have changed, cost more than a look
// everywhere, the look ends: then other ways could not save what finding them
// costs. Who tells what is gone is looked for if that saves more than it takes.
// A site without any protocol is not measured.
//
// A [Site] is plain data and encodes as JSON, so that whoever has looked once
// can plan again later without a request.
//
// # Choosing
//
// [Site.Plan] is pure. The price of a way is in bytes: those of bodies, and for
// each request the bytes of its headers and those of its answer
// ([Model].Header). A delay between requests is no part of it: it is the same
// for all ways, and whoever has to wait for each request already pays for each.
// A refresh is what it takes when as many pages have changed as the model says,
// and weighs in how likely it is that nothing has.
//
// What a way lacks is charged, so that cheap is not thin:
//
//   - A page whose content does not come (it is bare, or the way has summaries
//     alone) costs what the best way to single pages takes for it, which is a
//     page of HTML where nothing else gives it. [Route].Fill names these ways.
//   - A page that comes as text has lost its headings, lists, tables and code.
//     It is charged a quarter of a page of HTML ([Model].Thin): of four pages
//     one would have to be read again by whoever needs the structure. Blocks
//     win where they cost as much more as that, and not at any price.
//   - A page that the way does not name at all is lost. Each is charged ten
//     pages of HTML, beyond the twentieth that protocols may well count
//     otherwise, and beyond the half of a sitemap that may be lists of pages,
//     which no protocol carries.
//   - A way that does not tell what is gone is read from the start every seventh
//     refresh ([Model].Sweep), unless another one tells for less than one such
//     reading: that one is asked at each refresh ([Route].Deletions), because a
//     page that is gone should not be there for a week.
//
// The first sync and the refresh are chosen separately. To refresh by another
// way than the first one costs reading everything by that, spread over the
// refreshes that are expected ([Model].Rounds), unless it has been read before
// ([Model].Held). So a snapshot may bring the content, and a list of validators
// keep it fresh, where that pays.
package discover
