// Package static writes a site as a folder for static hosts: what a handler
// answers becomes files, and what it says in header fields becomes the
// configuration of the hosts: a _headers file for Netlify and Cloudflare Pages,
// and snippets for nginx and Caddy.
//
// Everything that the package writes is in that folder, most of it under the
// names that requests have, the rest in the hidden folder .millrace: the record
// of what was written, the snippets, and what is under way. A file comes under
// its name by a rename, and only if its bytes are others than before; a build
// that was killed is completed by the next one.
package static
