// Package proxy serves a site's own pages and files: from a folder, or from the
// site's own server through [Proxy]. [Pages] adds links to the machine documents to
// the headers and the HTML of pages.
package proxy
