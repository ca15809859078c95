// Package mirror keeps a sink equal to a source: bounded in memory, resumable
// after a crash, with as few requests as the source's validators allow.
//
// What every protocol would otherwise solve for itself is solved here once:
// comparing versions, asking for pages conditionally and concurrently,
// deletions by absence, and disbelief of a list that has suddenly lost much.
package mirror
