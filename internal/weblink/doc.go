// Package weblink reads what a response says about itself beside its content:
// the web links of its header fields (RFC 8288), and the links and metadata in
// the head of its HTML. It is pure, and fetches nothing.
//
// Whatever comes in, it gives what can be understood, and no errors: a link
// that leads nowhere, to another scheme than http and https, or that is about
// something else than the response is left out.
package weblink
