// Package agent mirrors websites into a store, by the cheapest way that each site offers: one
// of the protocols of [github.com/millrace/millrace/protocol/all], or a crawl.
//
// An [Agent] obeys a site's policy, its robots.txt and its rate limits. If one way fails, the agent
// uses the next. It fetches only pages that have changed since the last pull, and reports its costs
// and savings.
package agent
