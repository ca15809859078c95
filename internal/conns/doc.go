// Package conns limits the connections of a server, reloads its certificate, and combines the
// pieces of a response into fewer writes.
package conns
