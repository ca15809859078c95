// Package webauth signs and verifies HTTP messages (RFC 9421), with Ed25519 and
// nothing else.
//
// Three things are signed:
//
//   - the requests of a robot, so that a site knows whose it is: Web Bot Auth
//     (draft-ietf-webbotauth-httpsig-protocol, before that
//     draft-meunier-web-bot-auth-architecture). [Signer] signs them, [Verifier]
//     says who has.
//   - a directory of keys, which a robot's operator publishes at
//     [DirectoryPath]: a [Directory] serves it, with a signature of each key.
//   - the responses of a site, so that readers detect if an intermediary has
//     changed them: [Stamp] signs them, [ResponseVerifier] verifies them.
//
// # The names of agents
//
// A request names the address of a directory in Signature-Agent, and the key in
// it by its thumbprint (RFC 7638, RFC 8037). Who has sent it is the directory
// that has the key: a host if the directory is at [DirectoryPath], which only
// the host's owner can write; else the whole URL, since a user who may put a
// file on a host is not the host. A key counts for the directory that it was
// read from alone.
//
// The field has had three forms. A dictionary, whose member is covered by the
// signature, is the present one, and what [Signer] writes. A lone string is the
// first one. Both have named an origin, whose directory is at [DirectoryPath],
// before they named a directory itself: what has no path is taken for an origin.
// A member with parameters, which a draft had, identifies no sender.
//
// # What is bounded
//
// A stranger's request makes the verifier fetch what the stranger names. The
// client that it does so with must be a guarded one; beyond that one directory
// is asked for once at a time and once a minute at most, a few at once, without
// redirects; so many are remembered, of so many bytes and keys each. How long
// one is believed is its own to say, from a minute to a day. One that cannot be
// had leaves what is known of it in force for a day.
//
// # Deviations
//
//   - Signatures over fields with the parameters sf, bs or tr, or over
//     @query-param, are not understood; neither are algorithms beside Ed25519.
//   - A nonce is remembered until its signature expires, as long as there is
//     room for it, in one process. A signature without a nonce holds until then,
//     as the drafts have it.
//   - Of the responses of a site, those with status 200 and content are signed.
//     A 304 has neither Content-Digest nor Content-Type (RFC 9110, section
//     15.4.5), and what it confirms was verified when it came; of a 206 only the
//     whole has a digest that is known before, Repr-Digest. Neither is counted.
//   - The authority that a signature covers has to be one of the site's own, as
//     configured, whatever the Host field says: a proxy may have changed it.
package webauth
