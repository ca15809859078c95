// Package outbox sends the changes of a site in a store to receivers, each change at least once and
// in order, from the log of the store.
//
// The store keeps the position of each receiver. The position advances only after delivery, so a
// process that is killed in between sends events again and loses none. Several changes of one page
// between two deliveries are one event with the newest state. A page that was added and deleted in
// between is sent as deleted, because the receiver may know it.
//
// A receiver gets a reset and then every page if its position is older than the log, or belongs to
// another store.
package outbox
