// Package sites serves the site-wide documents, which belong to no single protocol:
// robots.txt, sitemap.xml, the catalog of APIs, and the documents about the MCP server. It adds the
// entries of the protocols to the site's own robots.txt, sitemap and catalog, if any.
package sites
