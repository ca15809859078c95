// Package sites answers for the documents that belong to a site and to no single
// protocol: robots.txt, sitemap.xml and the catalogue of APIs. A site may have its
// own; what is served then is composed of that and of what the protocols announce.
package sites
