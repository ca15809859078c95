// Package gateway is the HTTP surface of a published site and its lifecycle.
//
// What it answers is in routes.go. Machine documents come from the
// [edition.Server]; everything else comes from the site's own pages, an
// [http.Handler] such as [NewFiles] makes of a folder, to which the gateway
// adds the links by which agents discover the documents: as Link fields, and
// as elements in the head of the HTML, inserted while it streams through.
//
// A [Proxy] is such a handler, too: then the gateway stands in front of the
// site's own server, and passes on to it what is no machine document, as it has
// come. Requests for a host that the site does not go by are refused then (421),
// but for /healthz and /readyz.
//
// [Gateway.Run] serves a listener until its context ends. Nothing else
// of a request's Host field is believed or used.
package gateway
