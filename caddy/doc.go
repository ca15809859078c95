// Package caddy publishes the sites of a Caddy server in every protocol of millrace.
//
// The directive millrace of a Caddyfile publishes a site, and the matcher millrace_bot matches
// the requests of bots:
//
//	example.com {
//		millrace
//		root * /srv/www
//		file_server
//	}
//
// The handler reads the site through the site's own routes, as a visitor without credentials. So
// a page that needs a password, or that Caddy does not serve, is in no document. For folders, it
// reads the files, and asks the routes whether each page is public.
package caddy
