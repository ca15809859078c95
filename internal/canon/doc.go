// Package canon returns the canonical form of everything that is compared or hashed: URLs,
// text, JSON and fingerprints. It has no state and does no I/O: the same input yields the same
// bytes in every process.
//
//   - [URL], [Resolve], [Relative] and [Absolute]: canonical http(s) URLs and
//     the identity of a page under its site's base.
//   - [Normalize]: the text profile of TCT draft-01, section 1.6.4.
//     [NormalizeLower]: that of draft-00, section 4.1.
//   - [AppendString] and [AppendNumber]: JSON values in the canonical form of RFC 8785 (JCS).
//   - [SHA256Hex] and [Digest]: fingerprints.
package canon
