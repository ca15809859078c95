// Package discover finds every way into a site, what each of them costs, and
// the cheapest one.
//
//	site, err := discover.Look(ctx, client, "https://example.com/", &discover.Options{Rooms: all.Protocols()})
//	plan := site.Plan(nil)
//
// [Look] asks little: robots.txt, the root, the places where the protocols'
// own specifications let a client look, and a few samples. [Site.Plan] is pure,
// and chooses by what the look has seen.
package discover
