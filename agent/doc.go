// Package agent mirrors websites into a store, by the cheapest way that each site
// offers: one of the protocols of [github.com/millrace/millrace/protocol/all],
// or a crawl.
//
// An [Agent] obeys a site's policy, its robots.txt and its limits of requests. It
// falls back to the next way when one fails, fetches only what has changed since
// the last pull, and reports what it has cost and saved.
package agent
