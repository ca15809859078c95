// Package proxy answers for a site's own pages and files: from a folder, or from the
// site's own server, to which [Proxy] passes requests on. [Pages] adds the links by
// which machine documents are discovered to their headers and their HTML.
package proxy
