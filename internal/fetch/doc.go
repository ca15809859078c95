// Package fetch sends all outbound HTTP requests of millrace.
//
// A [Client] is an [http.RoundTripper] that trusts no server. It checks the address of each
// connection, so that no name, redirect or spelling of an address can reach the machine's own
// network. It limits time, headers and bodies, obeys robots.txt, and keeps one queue per host. It
// keeps no cookies. It uses no proxy, because a proxy would connect to any address, without the
// address check.
//
// A reader of a protocol uses the client's [http.Client] in three steps:
//
//	resp, err := fetch.Do(ctx, client, req) // retries temporary failures
//	err = fetch.CheckStatus(resp)           // a status code as an error
//	body, err := fetch.ReadBody(resp, max)  // verified, decoded, bounded
//
// Bodies stay coded until [ReadBody] or [Decode], because Content-Digest (RFC 9530) covers the
// coded bytes. Errors wrap the sentinels of the root package:
//
//   - ErrUnavailable: a network failure, a paused host, or a robots.txt that cannot be fetched
//   - ErrTooLarge: an exceeded limit
//   - ErrInvalid: an invalid body or redirect
//   - ErrForbidden: a refused address, or a URL that robots.txt disallows
//
// To fetch a file that is too large for memory, use the context that [Download] returns.
//
// # robots.txt
//
// Every request, except for /robots.txt itself, first checks the file of its origin (RFC 9309).
// This includes redirects. [Client.Robots] describes when the file is fetched, and what an absent
// file means. A disallowed request fails with a [*RobotsError] that names the line. The client
// applies the rules for the first product in its User-Agent. It caches a file for 24 hours, across
// processes if [Options.Robots] is set, and then requests it conditionally. [Stats] counts these
// requests like all others. Protocols use [RobotsOf] to find sitemaps. [ParseRobots] parses a file
// without network access.
//
// # The queue of a host
//
// Requests to one host name start in order. The gap between two starts is the longest of
// [Options.Delay], [Options.Gap], [Limit.Gap] and the Crawl-delay of robots.txt. At most
// [Options.Concurrency] requests to the host are in flight. A request is in flight until its body
// is read to the end or closed. A caller that keeps a body open during its next request may
// therefore wait for its own body, but not longer than [Options.Timeout].
//
// A Retry-After of a 429, 502, 503 or 504 delays all requests to the host. If it is longer than
// five minutes, the host is paused for that time, but at most a day.
//
// Successive failures (network errors, 429 and 5xx) delay the next request by 1 s, 2 s, and so on
// to 30 s, less a jitter of up to half. Requests that fail together, and those that [Do] repeats,
// count as one step. Other 5xx responses may concern only one page, so the first one is not a
// step. After eight failures in three steps, the host is paused: requests fail at once with a
// [*PauseError] that contains the remaining time. The first pause takes half a minute. Then one
// request is sent; if it fails too, the next pause is twice as long, up to five minutes. A success
// resets the host.
//
// # Redirects
//
// The client of [Client.HTTP] follows redirects, except from https to http, in a loop, or to a URL
// with credentials. It sends no Authorization to another origin. A caller that must see each hop
// uses [NoRedirects] of the same client and calls [RedirectTarget] for each response, which refuses
// the same targets. The transport enforces all other limits. Such a caller counts the hops and
// detects loops itself.
//
// # Conditional requests
//
// A caller stores [ValidatorsOf] a response with its body, and [Validators.Set] makes the next
// request conditional. For a 304, [CheckStatus] returns an error that wraps ErrUnmodified.
//
// # Dictionaries
//
// With [Options.Dictionaries], a response may be coded against the content of an earlier one (RFC
// 9842, the coding dcz), so that a response is about as large as the changes. Callers get decoded
// responses. A request offers the coding if it is a GET without credentials and without Range, to
// an https or loopback origin. It offers the coding even if the client has no dictionary, although
// section 6.1 reserves the name for clients that have one. This offer tells the server that
// declaring a dictionary is useful.
//
// The content of a response with Use-As-Dictionary is stored once it has been read to its end and
// verified, if it has 4 KiB to 32 MiB. An origin has at most 64 dictionaries, the largest ones. "*"
// is the only operator that a pattern may have.
//
// The coded body must name the offered dictionary, match its digest, and decode to at most MaxBody
// bytes. Dictionary and decoded body together may have at most [dcz.MaxSum] bytes. For MaxRatio,
// the dictionary counts as received, because a body may validly repeat all of it. If a check fails,
// the client at once sends one request without the coding, which bypasses all caches, and does not
// offer the coding to the origin for a day.
package fetch
