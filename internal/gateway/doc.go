// Package gateway is the HTTP surface of a published site and its lifecycle.
//
// What it answers is in routes.go. Machine documents come from the
// [edition.Press]; everything else comes from the site's own pages, an
// [http.Handler] such as [NewFiles] makes of a folder, to which the gateway
// adds the links by which agents discover the documents: as Link fields, and
// as elements in the head of the HTML, inserted while it streams through.
//
// [Gateway.Run] serves a listener until its context ends. Nothing of a
// request's Host field is believed or used.
package gateway
