// Package record implements the common parts of the engines of package store. It encodes
// pages, and computes the effect of changes on the logs of sites and publications. It stores
// keys, costs and leases as values of a [store.State]. It does no I/O of its own.
package record
