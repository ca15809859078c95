// Package gateway serves a published site over HTTP.
//
// The file routes.go lists the steps of a request. Machine documents come from the
// [edition.Server]. Everything else comes from the site's own pages, an [http.Handler] such as the
// files of a folder. The gateway adds links to these pages, by which agents discover the
// documents: Link fields, and elements that it inserts into the head of the HTML while the page
// streams.
//
// If the handler of the pages is a proxy, the gateway runs in front of the site's own server and
// passes on all requests that are not for machine documents. It refuses requests for unknown hosts
// with 421, except for health checks, metrics and the dashboard. It does not use the Host field
// for anything else.
//
// [Gateway.Run] serves a listener until its context ends.
package gateway
