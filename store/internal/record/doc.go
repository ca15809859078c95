// Package record has what the engines of package store share: how a page is
// encoded, and what becomes of a page in the log of a site and in that of a
// publication, and the keys and costs as values of a [store.State]. It keeps
// nothing itself.
package record
