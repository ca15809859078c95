// Package fetch is the only outbound HTTP of millrace.
//
// A [Client] is an [http.RoundTripper] that treats every server as a
// stranger. It checks the address that it really connects to, so that neither
// a name, a redirect nor a spelling of an address reaches the machine's own
// network. It bounds time, headers and bodies, obeys robots.txt, keeps one
// queue per host, keeps no cookies and uses no proxy: a proxy would connect on
// its own, past the address check.
//
// A reader of a protocol takes the client's [http.Client] and does three
// things with it:
//
//	resp, err := fetch.Do(ctx, client, req) // retries what may pass
//	err = fetch.CheckStatus(resp)           // a status code as an error
//	body, err := fetch.ReadBody(resp, max)  // verified, decoded, bounded
//
// Bodies stay coded until [ReadBody] or [Decode], because Content-Digest
// (RFC 9530) is over the coded bytes. Errors wrap the sentinels of the root
// package: ErrUnavailable for the network, a host that rests and a robots.txt
// that cannot be had, ErrTooLarge for a limit, ErrInvalid for a body or a
// redirect that cannot be right, ErrForbidden for an address that is refused
// and a URL that robots.txt disallows.
//
// A file that is larger than any document is asked for in a [Download].
//
// # robots.txt
//
// Every request but that for /robots.txt itself asks the file of its origin
// first (RFC 9309), whether it is the first one or a redirect; see
// [Client.Robots] for when the file is asked for and what its absence means.
// What it disallows is a [*RobotsError] that names the line. Rules are those
// of the first product in the User-Agent. A file is remembered for 24 hours,
// across processes by [Options.Robots], and then asked for conditionally. Its
// request counts in [Stats] like any other. [RobotsOf] gives a protocol the
// sitemaps, [ParseRobots] reads a file without a network.
//
// # The queue of a host
//
// Requests to one host name start in the order of asking, apart by
// [Options.Delay] or the file's Crawl-delay, whichever is longer, and at most
// [Options.Concurrency] are in flight. One is in flight until its body has
// been read to the end or closed, so who holds a body open while he asks for
// the next thing may wait for himself, though no longer than
// [Options.Timeout].
//
// A Retry-After of a 429, 502, 503 or 504 holds the whole host. One of more than
// five minutes makes it rest that long, for a day at most. So do failures in a row, which are the network's, 429 and 5xx:
// 1 s, 2 s, and so on to 30 s, less a jitter of up to half. Many requests that
// fail together, and those that [Do] repeats, count as one step; another 5xx,
// which may be one page's alone, counts for one step less. After eight failures
// in three steps the host rests: requests fail at once with a [*RestError] that
// says for how long, half a minute at first. Then one is let through; if that
// fails too, the rest doubles, up to five minutes. A success ends all of it.
//
// # Redirects
//
// The client of [Client.HTTP] follows redirects, but not from https to http,
// in a loop, or with credentials in the URL, and takes no Authorization to
// another origin. Who has to see each hop takes [NoRedirects] of the same
// client and asks [RedirectTarget] of each response, which refuses the same
// targets; all else is guarded in the transport. What a caller counts himself
// is the number of hops, and which of them he has seen.
//
// # Conditional requests
//
// [ValidatorsOf] a response are kept with its body, and [Validators.Set] makes
// the next request conditional. A 304 is ErrUnmodified to [CheckStatus].
package fetch
