// Package caddy publishes the sites of a Caddy server in every protocol of millrace.
//
// The directive millrace of a Caddyfile publishes a site, and the matcher millrace_bot matches the
// requests of bots:
//
//	example.com {
//		millrace
//		root * /srv/www
//		file_server
//	}
//
// The handler reads the site through the site's own routes, as a visitor without credentials.
// Therefore no document contains a page that needs a password or that Caddy does not serve. For
// folders, it reads the files, and requests each page from the routes to check whether it is
// public.
package caddy
