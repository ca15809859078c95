// Package mirror keeps a sink equal to a source, with bounded memory, resumable
// after a crash, and with as few requests as the source's validators allow.
//
// It compares versions, fetches pages conditionally and concurrently, deletes
// pages that a complete list no longer names, and does not trust a list that
// suddenly lost many.
package mirror
