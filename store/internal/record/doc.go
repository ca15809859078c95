// Package record has what the engines of package store share: the encoding of pages, the
// effect of changes on a site and on the log of a publication, and keys, costs and leases as
// values of a [store.State]. It stores nothing itself.
package record
