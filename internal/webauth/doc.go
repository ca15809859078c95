// Package webauth signs and verifies HTTP messages (RFC 9421). It supports only Ed25519.
//
// It signs three kinds of messages:
//
//   - The requests of a robot, so that a site can identify it: Web Bot Auth
//     (draft-ietf-webbotauth-httpsig-protocol, formerly draft-meunier-web-bot-auth-architecture).
//     [Signer] signs them; [Verifier] identifies the signer.
//   - A directory of keys, which the operator of a robot publishes at [DirectoryPath]. A
//     [Directory] serves it with a signature of each key.
//   - The responses of a site, so that readers detect if an intermediary has changed them. [Stamp]
//     signs them; [ResponseVerifier] verifies them.
//
// # The names of agents
//
// A request names the URL of a key directory in Signature-Agent, and the thumbprint of a key in it
// (RFC 7638, RFC 8037). The directory that contains the key identifies the sender. A directory at
// [DirectoryPath] identifies its host, since only the host's owner can write there. Any other
// directory identifies only its own URL, since a user who can put a file on a host need not be its
// owner. A key is valid only for the directory that it was read from.
//
// Signature-Agent has had three forms. The current one is a dictionary, whose member is covered by
// the signature; [Signer] writes this form. The first one is a single string. In earlier drafts,
// both forms named an origin, whose directory is at [DirectoryPath]. Now they name the directory
// itself. Therefore a URL without a path is read as an origin. A member with parameters, from an
// intermediate draft, identifies no sender.
//
// # Limits
//
// A request makes the verifier fetch a URL that its sender chooses. The client for these fetches
// must be a guarded one. In addition, the verifier limits:
//
//   - fetches of one directory to one at a time and one a minute
//   - concurrent fetches to a small number, without redirects
//   - the number of cached directories, and the bytes and keys of each
//
// The server sets how long to cache a directory, from a minute to a day. If a later fetch fails,
// the cached keys remain valid for a day.
//
// # Deviations
//
//   - The package does not support signatures over fields with the parameters sf, bs or tr, or over
//     @query-param, and no algorithm other than Ed25519.
//   - Each process stores nonces until their signatures expire, up to a maximum number. A signature
//     without a nonce is valid until it expires, as in the drafts.
//   - Only responses with status 200 and content are signed. A 304 has neither Content-Digest nor
//     Content-Type (RFC 9110, section 15.4.5), and the content it confirms was verified when
//     received. For a 206, only the digest of the whole representation (Repr-Digest) is known in
//     advance. [VerifyCounts] includes neither.
//   - The authority that a signature covers must be one of the configured authorities of the site.
//     The Host field is ignored, because a proxy may have changed it.
package webauth
