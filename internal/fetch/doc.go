// Package fetch is the only outbound HTTP of millrace.
//
// A [Client] is an [http.RoundTripper] that treats every server as a
// stranger. It checks the address that it really connects to, so that neither
// a name, a redirect nor a spelling of an address reaches the machine's own
// network. It bounds time, headers and bodies, leaves a gap between two
// requests to one host, keeps no cookies and uses no proxy: a proxy would
// connect on its own, past the address check.
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
// package: ErrUnavailable for the network, ErrTooLarge for a limit,
// ErrInvalid for a body or a redirect that cannot be right, ErrForbidden for
// an address that is refused.
package fetch
