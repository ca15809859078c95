// Package sites serves the site-wide documents, which belong to no single protocol:
// robots.txt, sitemap.xml and the catalog of APIs. It merges the site's own document, if
// any, with the additions of the protocols.
package sites
