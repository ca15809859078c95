// Package record has what the engines of package store share: how a page is
// encoded, what a batch of changes does to a site, what becomes of a page in the
// log of a publication, and the keys, costs and leases as values of a
// [store.State]. It keeps nothing itself.
package record
