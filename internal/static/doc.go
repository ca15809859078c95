// Package static writes a site as a folder for static hosts. Responses of a handler become files.
// Their header fields become the configuration of one kind of host, such as a _headers file for
// Netlify, or snippets for nginx.
//
// Most files have the names of their request paths. The hidden folder .millrace contains the
// record of the build, the snippets, and temporary files. A file is renamed to its name when
// it is complete, and only if its bytes have changed. After a crash, the next build completes
// the work.
package static
