// Package outbox tells somebody outside what changes in a site of a store, each
// change at least once and in order, by the store's own log.
//
// Where the telling has come to is kept in the store, for each receiver, once
// the receiver has what it was told. So whoever is killed in between tells it
// again, and nobody is told nothing. A page that has changed several times
// meanwhile is told once, as it is now; one that has come and gone again is told
// as deleted, since its receiver may have heard of it.
//
// A receiver that has been away for longer than the log reaches back, and one of
// another store, is told to forget what it has of the site, and then every page.
package outbox
